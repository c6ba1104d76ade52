import { randomInt } from "node:crypto";

const BACKUP_CODES = 10;
const LENGTH = 8;
/** Without l, o, 0 and 1, which people mistake for one another: 40 bits a code. */
const ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789";

/** `123 456` -> `123456`; null for what is no code of an authenticator app. */
export function totpCode(text: string): string | null {
  const code = bare(text);
  return /^\d{6}$/.test(code) ? code : null;
}

/** `ABCD-2345` -> `abcd2345`; null for what is no backup code. */
export function backupCode(text: string): string | null {
  const code = bare(text).toLowerCase();
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

/** People type them in groups. */
function bare(text: string): string {
  return text.replace(/[\s-]/g, "");
}
