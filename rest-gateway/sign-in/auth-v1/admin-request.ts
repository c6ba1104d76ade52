import {
  type AccountChanges,
  type AccountLinkRequest,
  type AccountLinkType,
  isUuid,
  type NewSecret,
  type NewUserAccount,
  type UserPageRequest,
} from "#accounts";
import { shortenText } from "#runtime";
import type { JsonObject } from "#runtime/json";
import { type AuthRequest, readObject, readText } from "./auth-v1-request.ts";
import { readEmail, readPhone } from "./code-request.ts";
import { authError, validationFailed } from "./errors.ts";

const DEFAULT_PER_PAGE = 50;
/** The maximum number of users in one response. */
const MAX_PER_PAGE = 1_000;
const MAX_NAME_LENGTH = 200;

/** Reads an id in the path. */
export function readUuid({ parameters }: AuthRequest, name: string): string {
  const { [name]: id = "" } = parameters;
  if (!isUuid(id)) throw authError(404, "validation_failed", `${name}_id must be an UUID`);
  return id.toLowerCase();
}

export function readPageRequest(query: URLSearchParams): UserPageRequest {
  const perPage = Math.min(readCount(query, "per_page", DEFAULT_PER_PAGE), MAX_PER_PAGE);
  return { page: readCount(query, "page", 1), perPage, filter: query.get("filter") ?? "" };
}

function readCount(query: URLSearchParams, name: string, initial: number): number {
  const text = query.get(name) || String(initial);
  // GoTrue counts page 0 as the first one.
  if (/^\d{1,9}$/.test(text) && (name === "page" || Number(text) > 0)) return Math.max(1, Number(text));
  throw validationFailed(`Bad Pagination Parameters: ${name} must be a positive number`);
}

export function readNewUser(body: JsonObject): { readonly user: NewUserAccount; readonly secret: NewSecret } {
  const changes = readChanges(body);
  const { email = "", phone = "", user_metadata: metadata = {} } = changes;
  if (email === "" && phone === "") throw validationFailed("Cannot create a user without either an email or phone");
  const id = readText(body, "id");
  if (id !== "" && (!isUuid(id) || /^[0-]*$/.test(id))) {
    throw validationFailed("ID must conform to the uuid v4 format");
  }
  const [password, passwordHash] = [readPassword(body), readText(body, "password_hash") || null];
  if (password !== null && passwordHash !== null) {
    throw validationFailed("Only a password or a password hash should be provided");
  }
  const user = { ...changes, ...(id && { id }), name: nameOf(metadata, email || "User") };
  return { user, secret: { password, passwordHash } };
}

export function readChanges(body: JsonObject): AccountChanges {
  const email = readText(body, "email") && readEmail(body);
  const phone = readPhone(body);
  const role = readText(body, "role");
  const userMetadata = readObject(body, "user_metadata");
  const appMetadata = readObject(body, "app_metadata");
  const banDuration = readText(body, "ban_duration");
  return {
    ...(email && { email }),
    ...(phone && { phone }),
    ...(role && { role }),
    ...(body.email_confirm === true && { email_confirm: true }),
    ...(body.phone_confirm === true && { phone_confirm: true }),
    ...(userMetadata && { user_metadata: userMetadata }),
    ...(appMetadata && { app_metadata: appMetadata }),
    ...(banDuration && { ban_seconds: parseBanDuration(banDuration) }),
  };
}

/** Reads the password; null if it is missing or empty. */
export function readPassword(body: JsonObject): string | null {
  return readText(body, "password") || null;
}

const LINK_TYPES: ReadonlySet<string> = new Set<AccountLinkType>([
  ...(["signup", "invite", "magiclink", "recovery", "email_change_current", "email_change_new"] as const),
]);

export function readLinkRequest(body: JsonObject): Omit<AccountLinkRequest, "redirectTo"> {
  const type = readText(body, "type");
  if (!LINK_TYPES.has(type))
    throw validationFailed(`Invalid email action link type requested: ${shortenText(type, 40)}`);
  const newEmail = type.startsWith("email_change") ? readRequiredEmail(body, "new_email") : "";
  const password = type === "signup" ? readPassword(body) : null;
  const invitation = readInvitation(body);
  if (type === "signup" && password === null) throw validationFailed("Signup requires a valid password");
  return { ...invitation, type: type as AccountLinkType, newEmail, password };
}

export function readInvitation(body: JsonObject): Pick<AccountLinkRequest, "email" | "metadata" | "name"> {
  const email = readRequiredEmail(body, "email");
  const metadata = readObject(body, "data") ?? {};
  return { email, metadata, name: nameOf(metadata, email) };
}

function readRequiredEmail(body: JsonObject, field: string): string {
  if (readText(body, field) === "") throw validationFailed("An email address is required");
  return readEmail(body, field);
}

/** Returns the user's name, as applications send it, or the part of the address before the @. */
function nameOf(metadata: object, address: string): string {
  const { name, full_name: fullName } = metadata as JsonObject;
  const given = [name, fullName].find((value) => typeof value === "string" && value.trim() !== "");
  return shortenText(typeof given === "string" ? given : address.split("@", 1)[0]!, MAX_NAME_LENGTH);
}

const SECONDS_PER_UNIT: Readonly<Record<string, number>> = {
  ...{ ns: 1e-9, us: 1e-6, µs: 1e-6, ms: 1e-3 },
  ...{ s: 1, m: 60, h: 3600 },
};
/** The limit of GoTrue's durations, which have 63 bits of nanoseconds. */
const MAX_DURATION = 2 ** 63 / 1e9;

/** The pattern of a ban's duration. Each text matches in one way: otherwise a long invalid one would be tried in all ways. */
const BAN_DURATION = /^([+-]?)((?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|ms|s|m|h))+|0)$/;

/** Parses `24h`, `1h30m`; `none` ends a ban. */
function parseBanDuration(text: string): number {
  if (text === "none") return 0;
  const [, sign = "", parts = ""] = BAN_DURATION.exec(text) ?? [];
  let seconds = 0;
  for (const [, amount, unit] of parts.matchAll(/([\d.]+)([a-zµ]+)/g)) {
    seconds += Number(amount) * SECONDS_PER_UNIT[unit!]!;
  }
  if (parts !== "" && seconds < MAX_DURATION) return sign === "-" ? 0 : seconds;
  throw validationFailed(`invalid format for ban duration: time: invalid duration "${shortenText(text, 40)}"`);
}
