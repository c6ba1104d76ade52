// Deno's bcrypt, on the implementation of the service.

import * as bcrypt from "@node-rs/bcrypt";

const DEFAULT_ROUNDS = 10;

export function genSalt(rounds = DEFAULT_ROUNDS): Promise<string> {
  return bcrypt.genSalt(rounds, "2b");
}

export function genSaltSync(rounds = DEFAULT_ROUNDS): string {
  return bcrypt.genSaltSync(rounds, "2b");
}

/** Uses the rounds of the salt, and makes a new salt. */
export function hash(text: string, salt?: string): Promise<string> {
  return bcrypt.hash(text, roundsOf(salt));
}

export function hashSync(text: string, salt?: string): string {
  return bcrypt.hashSync(text, roundsOf(salt));
}

export function compare(text: string, hashed: string): Promise<boolean> {
  return bcrypt.compare(text, hashed);
}

export function compareSync(text: string, hashed: string): boolean {
  return bcrypt.compareSync(text, hashed);
}

function roundsOf(salt: string | undefined): number {
  return salt === undefined ? DEFAULT_ROUNDS : Number(/^\$2[abxy]?\$(\d\d)\$/.exec(salt)?.[1] ?? DEFAULT_ROUNDS);
}
