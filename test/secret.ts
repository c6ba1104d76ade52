/** The secret with which services in tests sign tokens. */
export const SECRET = "a secret that is long enough to sign with";
