import { hash, type KeyObject, timingSafeEqual } from "node:crypto";
import type { Config } from "#config";
import { deriveEncryptionKey, type IssuingKeys } from "./token-keys.ts";
import { makeRoleKey } from "./tokens.ts";

/** The two keys of a project in Supabase's newer form: `sb_publishable_…` is the anon key, `sb_secret_…` the key of `service_role`. */
type ProjectKeys = { readonly publishable: string; readonly secret: string };

type ProjectKeyName = keyof ProjectKeys;

type ProjectKeySettings = Pick<Config, "anonRole" | "jwtIssuer" | "jwtRoleClaim">;

/** The role of the secret key. */
export const SERVICE_ROLE = "service_role";
const NAMES: readonly ProjectKeyName[] = ["publishable", "secret"];
const SECRET_BYTES = 16;
const CHECKSUM_LENGTH = 8;

/** The keys are derived from the key that signs tokens, so all gateways of the deployment have the same ones, and a rotation ends them. */
export function makeProjectKeys({ signing }: IssuingKeys): ProjectKeys {
  return { publishable: deriveProjectKey("publishable", signing), secret: deriveProjectKey("secret", signing) };
}

/** Returns the role key that a project key stands for; null for any other text. Previous secrets are valid here as they are for tokens. */
export function makeProjectKeyReader(keys: IssuingKeys, settings: ProjectKeySettings): (text: string) => string | null {
  const secrets = keys.verifying.filter(({ key, isForeign }) => key.type === "secret" && !isForeign);
  const sources = [keys.signing, ...secrets];
  const roles = { publishable: settings.anonRole, secret: SERVICE_ROLE };
  const known = NAMES.map((name) => ({
    keys: sources.map((source) => Buffer.from(deriveProjectKey(name, source))),
    roleKey: makeRoleKey(roles[name], keys, settings),
  }));
  return (text) => {
    if (!text.startsWith("sb_")) return null;
    const sent = Buffer.from(text);
    const isSent = (key: Buffer) => key.length === sent.length && timingSafeEqual(key, sent);
    return known.find(({ keys }) => keys.some(isSent))?.roleKey ?? null;
  };
}

function deriveProjectKey(name: ProjectKeyName, source: { readonly key: KeyObject }): string {
  const bytes = deriveEncryptionKey(source, `project key ${name}`).subarray(0, SECRET_BYTES);
  const key = `sb_${name}_${bytes.toString("base64url")}`;
  return `${key}_${hash("sha256", key, "base64url").slice(0, CHECKSUM_LENGTH)}`;
}
