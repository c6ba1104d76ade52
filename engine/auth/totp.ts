import { generateSecret, generateURI, verify } from "otplib";

/** RFC 6238 with the parameters of all authenticator apps: SHA-1, six digits, 30 seconds. */
const STEP_SECONDS = 30;

/** 160 bits in base32, as RFC 4226 §4 recommends. */
export function newTotpSecret(): string {
  return generateSecret();
}

/** The content of the QR code. */
export function totpUri(secret: string, issuer: string, username: string): string {
  return generateURI({ secret, issuer, label: username });
}

/** The time step of the code: the current one, the previous or the next; null for a wrong code. */
export async function matchTimeStep(secret: string, code: string): Promise<number | null> {
  const result = await verify({ secret, token: code, epochTolerance: STEP_SECONDS });
  return result.valid ? (result as { timeStep: number }).timeStep : null;
}
