import { createHmac, timingSafeEqual } from "node:crypto";
import { isJsonObject } from "../json-object.ts";
import { remember } from "../remember.ts";
import type { TokenKey, TokenKeys } from "./keys.ts";

/** The key of that name, or else all of them: who issues with the same secret may name it otherwise, or not at all. */
export function keysNamed(id: unknown, keys: readonly TokenKey[]): readonly TokenKey[] {
  const named = keys.filter((key) => key.id === id);
  return named.length > 0 ? named : keys;
}

const PARTS = /^([\w-]+)\.[\w-]+\.[\w-]+$/;

/**
 * Whether it is certain that we have signed it. `jsonwebtoken` takes several times as long, most of it for reading what is
 * read again later; so it is left to judge what is not as usual, and to say what is wrong.
 */
export function isSurelyOurs(token: string, { algorithm, verifying }: TokenKeys): boolean {
  if (algorithm !== "HS256") return false;
  const head = PARTS.exec(token)?.[1];
  const { isUsual, id } = head === undefined ? UNUSUAL : readHead(head);
  if (!isUsual) return false;
  const end = token.lastIndexOf(".");
  const signed = token.slice(0, end);
  const shown = Buffer.from(token.slice(end + 1));
  return keysNamed(id, verifying).some(({ key }) => {
    const expected = Buffer.from(createHmac("sha256", key).update(signed).digest("base64url"));
    return shown.length === expected.length && timingSafeEqual(shown, expected);
  });
}

const UNUSUAL = { isUsual: false, id: undefined };
const USUAL_NAMES = ["alg", "typ", "kid"];
const FEW = 100;

/** Of one who issues all tokens have the same. */
const readHead = remember(FEW, (head: string): { readonly isUsual: boolean; readonly id: unknown } => {
  try {
    const said: unknown = JSON.parse(Buffer.from(head, "base64url").toString("utf8"));
    if (!isJsonObject(said)) return UNUSUAL;
    const isUsual = said.alg === "HS256" && Object.keys(said).every((name) => USUAL_NAMES.includes(name));
    return { isUsual, id: said.kid };
  } catch {
    return UNUSUAL;
  }
});
