// Half the contribution of a sphere (radius s, distance r) to the Born integral of an atom, radius rho
// (Hawkins, Cramer and Truhlar 1996).
float hct(float r, float rho, float s) {
    if (rho >= r + s) return 0;
    const float lower = 1 / fmax(rho, fabs(r - s)), upper = 1 / (r + s);
    float term = lower - upper + 0.25f * (r - s * s / r) * (upper * upper - lower * lower);
    term += 0.5f / r * log(upper / lower);
    if (rho < s - r) term += 2 * (1 / rho - lower);
    return 0.5f * term;
}
