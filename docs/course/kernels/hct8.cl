// hct for eight pairs at a time, from r^2. No branch: both values are computed, and one is selected.
float8 hct8(float8 r2, float8 rho, float8 s) {
    const float8 inv_r = rsqrt(r2), r = r2 * inv_r;
    const float8 lower = 1 / fmax(rho, fabs(r - s)), upper = 1 / (r + s);
    float8 term = lower - upper + 0.25f * (r - s * s * inv_r) * (upper * upper - lower * lower);
    term += 0.5f * inv_r * log(upper / lower);
    term = rho < s - r ? term + 2 * (1 / rho - lower) : term;
    return (rho >= r + s) | (r2 == 0) ? (float8)0 : 0.5f * term;  // no contribution to itself
}
