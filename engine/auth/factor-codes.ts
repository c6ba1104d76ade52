import { randomInt } from "node:crypto";

const BACKUP_CODES = 10;
const LENGTH = 8;
/** Without the similar characters l, o, 0 and 1; a code has 40 bits. */
const ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789";

/** `123 456` -> `123456`; null if it is not a code of an authenticator app. */
export function normalizeTotpCode(text: string): string | null {
  const code = removeSeparators(text);
  return /^\d{6}$/.test(code) ? code : null;
}

/** `ABCD-2345` -> `abcd2345`; null if it is not a backup code. */
export function normalizeBackupCode(text: string): string | null {
  const code = removeSeparators(text).toLowerCase();
  return code.length === LENGTH && [...code].every((sign) => ALPHABET.includes(sign)) ? code : null;
}

export function newBackupCodes(): string[] {
  const codes = new Set<string>();
  while (codes.size < BACKUP_CODES) codes.add(newBackupCode());
  return [...codes];
}

function newBackupCode(): string {
  return Array.from({ length: LENGTH }, () => ALPHABET[randomInt(ALPHABET.length)]).join("");
}

/** People type codes in groups. */
function removeSeparators(text: string): string {
  return text.replace(/[\s-]/g, "");
}
