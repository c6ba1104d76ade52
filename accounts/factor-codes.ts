import { randomInt } from "node:crypto";
import { generateSecret, generateURI, verify } from "otplib";

/** RFC 6238 with the parameters of all authenticator apps: SHA-1, six digits, 30 seconds. */
const STEP_SECONDS = 30;

const BACKUP_CODE_COUNT = 10;
const BACKUP_CODE_LENGTH = 8;
/** The alphabet omits the similar characters l, o, 0 and 1; a code has 40 bits. */
const BACKUP_CODE_ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789";

/** `123 456` -> `123456`; null if it is not a code of an authenticator app. */
export function normalizeTotpCode(text: string): string | null {
  const code = removeSeparators(text);
  return /^\d{6}$/.test(code) ? code : null;
}

/** `ABCD-2345` -> `abcd2345`; null if it is not a backup code. */
export function normalizeBackupCode(text: string): string | null {
  const code = removeSeparators(text).toLowerCase();
  return code.length === BACKUP_CODE_LENGTH && [...code].every((sign) => BACKUP_CODE_ALPHABET.includes(sign))
    ? code
    : null;
}

export function newBackupCodes(): string[] {
  const codes = new Set<string>();
  while (codes.size < BACKUP_CODE_COUNT) codes.add(newBackupCode());
  return [...codes];
}

function newBackupCode(): string {
  return Array.from(
    { length: BACKUP_CODE_LENGTH },
    () => BACKUP_CODE_ALPHABET[randomInt(BACKUP_CODE_ALPHABET.length)],
  ).join("");
}

/** Users type codes in groups of characters. */
function removeSeparators(text: string): string {
  return text.replace(/[\s-]/g, "");
}

/** The secret has 160 bits in base32, as RFC 4226 §4 recommends. */
export function newTotpSecret(): string {
  return generateSecret();
}

/** The content of the QR code. */
export function totpUri(secret: string, issuer: string, username: string): string {
  return generateURI({ secret, issuer, label: username });
}

/** Returns the time step of the code: the current one, the previous or the next; null for a wrong code. */
export async function matchTimeStep(secret: string, code: string): Promise<number | null> {
  const result = await verify({ secret, token: code, epochTolerance: STEP_SECONDS });
  return result.valid ? (result as { timeStep: number }).timeStep : null;
}
