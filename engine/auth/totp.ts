import { generateSecret, generateURI, verify } from "otplib";

/** RFC 6238 as every authenticator app has it: SHA-1, six digits, a step of 30 seconds. */
const STEP_SECONDS = 30;

/** 160 bits in base32, as RFC 4226 §4 recommends. */
export function newTotpSecret(): string {
  return generateSecret();
}

/** What the app reads from the QR code. */
export function totpUri(secret: string, issuer: string, username: string): string {
  return generateURI({ secret, issuer, label: username });
}

/** The time step of which this is the code, now or one before or after; null when of none. */
export async function stepOf(secret: string, code: string): Promise<number | null> {
  const result = await verify({ secret, token: code, epochTolerance: STEP_SECONDS });
  return result.valid ? (result as { timeStep: number }).timeStep : null;
}
