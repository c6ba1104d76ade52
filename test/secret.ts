/** What the services that tests start sign tokens with. */
export const SECRET = "a secret that is long enough to sign with";
