// Beyond four scaled radii the term is a short series in (s/r)^2, without root or logarithm.
float8 series8(float8 r2, float8 s) {
    const float8 inv_r2 = 1 / r2, x = s * s * inv_r2;
    const float8 sum = ____;
    return s * s * s * inv_r2 * inv_r2 * sum;
}

// Eight terms: all by the series if no pair is near, otherwise the near ones by hct8.
float8 born8(float8 r2, float8 rho, float8 s) {
    const float8 far = fmax(4 * s, rho + s), term = series8(r2, s);
    const int8 near = ____;
    if (____) return term;
    return near ? hct8(r2, rho, s) : term;
}
