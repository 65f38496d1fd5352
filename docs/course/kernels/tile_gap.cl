// Squared distance between the boxes of two tiles: no pair of their atoms is closer.
float gap2(float4 centre, float4 half_edges, float4 other_centre, float4 other_half_edges) {
    const float4 gap = fmax(fabs(centre - other_centre) - half_edges - other_half_edges, (float4)0);
    return gap.x * gap.x + gap.y * gap.y + gap.z * gap.z;
}

// The series in u = 1/r^2, with coefficients computed once per atom.
float8 far8(float8 u, float4 c) { return u * u * (c.x + u * (c.y + u * (c.z + u * c.w))); }
