const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Lifetimes of tokens, sessions and links, in seconds. */
export const LIFETIMES = {
  accessToken: HOUR,
  refreshToken: 7 * DAY,
  /** Of an administrator's token for Studio, and of one to view rows as somebody else. */
  administratorToken: 15 * MINUTE,
  /** Within this time, a refresh with the same Idempotency-Key returns the same pair again. */
  refreshRetry: 10,
  idleSession: 30 * MINUTE,
  /** The maximum, even for a session in use. */
  session: 12 * HOUR,
  /** Between password and code on the sign-in page. */
  pendingSignIn: 5 * MINUTE,
  resetLink: HOUR,
  verificationLink: DAY,
  addressChangeLink: HOUR,
  /** Of the link and the code of six digits in one mail. */
  mailCode: HOUR,
  invitation: DAY,
  /** Between the end of a sign-in and the exchange of its code for tokens. */
  flowCode: 5 * MINUTE,
  /** Between the request for a second factor or a passkey and its response. */
  factorChallenge: 5 * MINUTE,
} as const;
