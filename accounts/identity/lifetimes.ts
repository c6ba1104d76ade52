const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Lifetimes of tokens, sessions and links, in seconds. */
export const LIFETIMES = {
  accessToken: HOUR,
  refreshToken: 7 * DAY,
  /** The lifetime of an administrator's token for Studio, and of one to view rows as another user. */
  administratorToken: 15 * MINUTE,
  /** Within this time, a refresh with the same Idempotency-Key returns the same pair again. */
  refreshRetry: 10,
  idleSession: 30 * MINUTE,
  /** The maximum lifetime, even for a session in use. */
  session: 12 * HOUR,
  /** The time between password and code on the sign-in page. */
  pendingSignIn: 5 * MINUTE,
  resetLink: HOUR,
  verificationLink: DAY,
  addressChangeLink: HOUR,
  /** The lifetime of the link and the six-digit code in one mail. */
  mailCode: HOUR,
  invitation: DAY,
  /** The time between the end of a sign-in and the exchange of its code for tokens. */
  flowCode: 5 * MINUTE,
  /** The time between the request for a second factor or a passkey and its response. */
  factorChallenge: 5 * MINUTE,
} as const;
