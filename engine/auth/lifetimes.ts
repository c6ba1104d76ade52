const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** How long what is issued lasts, in seconds. */
export const LIFETIMES = {
  accessToken: HOUR,
  refreshToken: 7 * DAY,
  /** The same Idempotency-Key is given the same pair again. */
  refreshRetry: 10,
  idleSession: 30 * MINUTE,
  /** However busy it is. */
  session: 12 * HOUR,
  /** Between the password and the code, on the page. */
  pendingSignIn: 5 * MINUTE,
  resetLink: HOUR,
  verificationLink: DAY,
} as const;
