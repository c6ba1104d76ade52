import { createPrivateKey, createPublicKey, type KeyObject } from "node:crypto";
import { accessSync, constants } from "node:fs";
import { isIP } from "node:net";
import { algorithmsOf, isKeySetText, isWeakKey, parseKeySet, type WebKey } from "#runtime";
import { type ClaimPath, parseClaimPath } from "./claim-path.ts";
import { findServersError, findTlsError, parseServers, withFirstHost } from "./connection-string.ts";

/** Parses the text of a setting, or throws an error that describes the allowed values. */
type SettingReader<T> = (text: string) => T;

export const text: SettingReader<string> = (value) => value;

export function integer(least: number, max = Number.MAX_SAFE_INTEGER): SettingReader<number> {
  const range = max === Number.MAX_SAFE_INTEGER ? `of at least ${least}` : `from ${least} to ${max}`;
  return (value) => {
    const number = Number(value);
    if (!/^-?\d+$/.test(value) || number < least || number > max) throw new Error(`a whole number ${range}`);
    return number;
  };
}

export const workerCount: SettingReader<number | "auto"> = (value) => {
  if (value === "auto") return value;
  try {
    return integer(1, 512)(value);
  } catch (error) {
    throw new Error(`auto or ${(error as Error).message}`);
  }
};

/** The minimum and maximum of minute, hour, day, month and weekday. */
const CRON_FIELDS = [
  [0, 59],
  [0, 23],
  [1, 31],
  [1, 12],
  [0, 7],
] as const;

/** The syntax is that of graphile-worker: five fields of `*`, numbers, ranges, lists and steps, without names. */
export const cronSchedule: SettingReader<string> = (value) => {
  const fields = value.trim().split(/\s+/);
  const isValid = ([least, max]: readonly [number, number], part: string) => {
    const match = /^(?:\*|(\d{1,2})(?:-(\d{1,2}))?)(?:\/0*[1-9]\d?)?$/.exec(part);
    const numbers = (match?.slice(1) ?? []).filter((number) => number !== undefined).map(Number);
    return match !== null && numbers.every((number) => number >= least && number <= max);
  };
  if (
    fields.length !== CRON_FIELDS.length ||
    !CRON_FIELDS.every((range, index) => fields[index]!.split(",").every((part) => isValid(range, part)))
  ) {
    throw new Error("a time in cron's syntax: minute, hour, day, month, weekday, such as 0 3 * * *");
  }
  return fields.join(" ");
};

export function oneOf<const T extends string>(...allowed: readonly T[]): SettingReader<T> {
  return (value) => {
    const match = allowed.find((option) => option === value);
    if (match === undefined) throw new Error(`one of ${allowed.join(", ")}`);
    return match;
  };
}

const YES = ["true", "yes", "on", "1"];
const NO = ["false", "no", "off", "0"];

export const flag: SettingReader<boolean> = (value) => {
  const word = value.toLowerCase();
  if (YES.includes(word)) return true;
  if (NO.includes(word)) return false;
  throw new Error("true or false");
};

export const list: SettingReader<readonly string[]> = (value) =>
  value
    .split(",")
    .map((item) => item.trim())
    .filter((item) => item !== "");

/** The parts of Supabase's SQL that a project of template `supabase` may have. */
const SUPABASE_API_NAMES = ["cron", "net", "vault", "queues", "graphql"] as const;

export const supabaseApis: SettingReader<readonly string[]> = (value) => list(value).map(oneOf(...SUPABASE_API_NAMES));

/** `name=value,name=value` with percent-encoded values (W3C Baggage), the format of OpenTelemetry's settings. */
export const keyValues: SettingReader<Readonly<Record<string, string>>> = (value) =>
  Object.fromEntries(
    list(value).map((pair) => {
      const [, name, encoded] = /^([^=\s]+)\s*=\s*(.*)$/.exec(pair) ?? [];
      if (name === undefined || encoded === undefined || /%(?![0-9a-f]{2})/i.test(encoded)) {
        throw new Error("pairs like name=value, separated by commas, with values percent-encoded");
      }
      return [name, decodeURIComponent(encoded)];
    }),
  );

export const ratio: SettingReader<number> = (value) => {
  const number = Number(value);
  if (!(number >= 0 && number <= 1)) throw new Error("a number from 0 to 1");
  return number;
};

export const nonEmptyList: SettingReader<readonly string[]> = (value) => {
  const items = list(value);
  if (items.length === 0) throw new Error("one or more names, separated by commas");
  return items;
};

export const postgresUrl: SettingReader<string> = (value) => {
  // The connection string of a socket has no host, which a URL requires.
  const url = /^postgres(ql)?:\/\/\S+$/.test(value)
    ? URL.parse(withFirstHost(value).replace(/^(\w+:\/\/(?:[^/@]*@)?)\//, "$1localhost/"))
    : null;
  // An unescaped special character in the password makes the rest of it look like the database.
  if (!url || url.pathname.length < 2 || url.pathname.includes("@") || url.hash !== "") {
    const advice = /[?#/].*@/.test(value.replace(/^\w+:\/\//, ""))
      ? ", in which a password's signs are percent-encoded: %2F for /, %3F for ?, %23 for #"
      : "";
    throw new Error(`a connection string like postgresql://user@host:5432/database${advice}`);
  }
  const serversFault = findServersError(value);
  if (serversFault) throw new Error(`a connection string in which ${serversFault}`);
  const fault = findTlsError(value, canRead);
  if (fault) throw new Error(`a connection string that says how to use TLS: ${fault}`);
  return value;
};

function canRead(file: string): boolean {
  try {
    accessSync(file, constants.R_OK);
    return true;
  } catch {
    return false;
  }
}

/** The name of a branch is a part of the name of its database, of which Postgres keeps 63 bytes. */
export const branchName: SettingReader<string> = (value) => {
  if (/^[a-z][a-z0-9_-]{0,29}$/.test(value)) return value;
  throw new Error("at most 30 of the characters a-z, 0-9, _ and -, of which the first is a letter");
};

/** There is one connection string per server: several hosts in one are several servers. */
export const postgresUrls: SettingReader<readonly string[]> = (value) =>
  value
    .split(/,(?=\s*(?:postgres(?:ql)?:|$))/)
    .map((item) => item.trim())
    .filter((item) => item !== "")
    .flatMap((item) => parseServers(postgresUrl(item)).servers.map(({ url }) => url));

/** A secret, or a JWK or JWKS as in PostgREST. */
export const jwtSecret: SettingReader<string> = (value) => {
  if (!isKeySetText(value)) return plainSecret(value);
  let keys: readonly WebKey[];
  try {
    keys = parseKeySet(value);
  } catch (error) {
    throw new Error(`a secret, or a JWK or JWKS: ${(error as Error).message}`);
  }
  if (keys.length === 0) throw new Error("a secret, or a JWK or JWKS: the key set has no key that verifies signatures");
  return value;
};

/** HS256 requires at least 256 bits; a shorter secret can be found by brute force from one token. */
const plainSecret: SettingReader<string> = (value) => {
  if (value.length < 32) throw new Error("at least 32 characters");
  // These secrets are guessable. The name of a file is replaced with its content in the environment, but not in the database.
  if (isKeySetText(value) || /^\s*(@|-----BEGIN)/.test(value)) {
    throw new Error("the secret itself, not a key set, a file's name or a PEM key (see JWT_PRIVATE_KEY)");
  }
  return value;
};

const BASE64 = /^[\w+/-]+[=.]*$/;

/** False for text with invalid characters: decoders skip them, which would result in a shorter secret or an empty one. */
export function isBase64Secret(text: string): boolean {
  if (!BASE64.test(text.trim())) return false;
  try {
    plainSecret(Buffer.from(text, "base64").toString("latin1"));
    return true;
  } catch {
    return false;
  }
}

export const jwtSecrets: SettingReader<readonly string[]> = (value) => list(value).map(plainSecret);

export const privateKey: SettingReader<string> = (value) => {
  const pem = value.replaceAll("\\n", "\n").replaceAll("\r\n", "\n");
  if (!isTokenKey(pem)) throw new Error("an RSA private key of at least 2048 bits or an EC key (P-256), in PEM form");
  return pem;
};

/** Private keys are accepted too; their public keys are derived. */
export const publicKeys: SettingReader<readonly string[]> = (value) => {
  const keys = value.replaceAll("\\n", "\n").match(/-----BEGIN ([A-Z ]+)-----[\s\S]*?-----END \1-----/g) ?? [];
  if (keys.length === 0 || !keys.every((pem) => isTokenKey(pem, createPublicKey))) {
    throw new Error("RSA keys of at least 2048 bits or EC keys (P-256), in PEM form, one after the other");
  }
  return keys;
};

function isTokenKey(pem: string, read: (pem: string) => KeyObject = createPrivateKey): boolean {
  try {
    const key = read(pem);
    return ["RS256", "ES256"].includes(algorithmsOf(key)[0]!) && !isWeakKey(key);
  } catch {
    return false;
  }
}

export const httpUrl: SettingReader<string> = (value) => {
  if (!/^https?:$/.test(URL.parse(value)?.protocol ?? ""))
    throw new Error("an address such as https://api.example.com");
  return value.replace(/\/+$/, "");
};

/** A person who can change the response can sign tokens, so it is fetched by https only, except on this machine. */
export const keySetUrl: SettingReader<string> = (value) => {
  const { protocol, hostname, username } = URL.parse(value) ?? {};
  const isLocal = protocol === "http:" && /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname ?? "");
  if (!(protocol === "https:" || isLocal) || username !== "") {
    throw new Error("an https address such as https://auth.example.com/.well-known/jwks.json");
  }
  return value;
};

/** The name of a function with its schema; names that must be quoted are not supported. */
export const functionName: SettingReader<string> = (value) => {
  if (!/^[a-z_][a-z0-9_$]*\.[a-z_][a-z0-9_$]*$/.test(value)) throw new Error("a function such as public.access_claims");
  return value;
};

/** A secret in the format that Supabase uses for webhooks: `v1,whsec_…`. */
export const webhookSecret: SettingReader<Buffer> = (value) => {
  const [, encoded = ""] = /^(?:v1,)?whsec_([A-Za-z0-9+/]+=*)$/.exec(value) ?? [];
  const secret = Buffer.from(encoded, "base64");
  if (secret.length < 24) throw new Error("v1,whsec_ and the base64 encoding of at least 24 bytes");
  return secret;
};

export const smtpUrl: SettingReader<string> = (value) => {
  const { protocol, hostname } = URL.parse(value) ?? {};
  if (!hostname || !/^smtps?:$/.test(protocol ?? ""))
    throw new Error("an address such as smtp://user:password@mail.example.com:587");
  return value;
};

/** The redirect URLs may have the URL schemes of mobile apps; schemes that contain data or scripts are not allowed. */
export const redirectTargets: SettingReader<readonly string[]> = (value) => {
  const items = list(value);
  const isPlace = (item: string) =>
    /^(?!javascript:|data:|vbscript:|blob:|file:)[a-z][a-z0-9+.-]*:\/\/[^?#]+$/i.test(item);
  if (!items.every((item) => isPlace(item) && URL.canParse(item))) {
    throw new Error("addresses such as https://app.example.com/signed-in or https://app.example.com/*");
  }
  return items;
};

/** The name of a header is a token (RFC 9110 §5.6.2); headers that frame the message are excluded. */
export const headerName: SettingReader<string> = (value) => {
  const isFraming = /^(connection|content-length|keep-alive|te|trailer|transfer-encoding|upgrade)$/i.test(value);
  if (isFraming || !/^[\w!#$%&'*+.^`|~-]+$/.test(value)) throw new Error("a header's name such as X-Request-Id");
  return value;
};

/** An address such as `no-reply@example.com` or `Example <no-reply@example.com>`. */
export const mailAddress: SettingReader<string> = (value) => {
  if (!/^(?:[^<>@\s][^<>@\r\n]*<[^<>@\s]+@[^<>@\s]+>|[^<>@\s]+@[^<>@\s]+)$/.test(value)) {
    throw new Error("an address such as Example <no-reply@example.com>");
  }
  return value;
};

export const email: SettingReader<string> = (value) => {
  if (!/^[^@\s]+@[^@\s]+\.[^@\s]+$/.test(value)) throw new Error("an e-mail address");
  return value;
};

/** The values of Express's "trust proxy": a flag, a number of hops, or addresses and names such as loopback. */
export const trustProxy: SettingReader<boolean | number | readonly string[]> = (value) => {
  if (/^\d+$/.test(value)) return Number(value);
  if (YES.includes(value) || NO.includes(value)) return flag(value);
  const proxies = nonEmptyList(value);
  if (!proxies.every(isProxy)) throw new Error("true, a number of hops, or addresses such as loopback, 10.0.0.0/8");
  return proxies;
};

function isProxy(text: string): boolean {
  if (["loopback", "linklocal", "uniquelocal"].includes(text)) return true;
  const [address = "", bits, ...more] = text.split("/");
  const max = { 0: -1, 4: 32, 6: 128 }[isIP(address)] ?? -1;
  return max > 0 && more.length === 0 && (bits === undefined || (/^\d+$/.test(bits) && Number(bits) <= max));
}

export const origins: SettingReader<readonly string[] | "*"> = (value) => {
  if (value.trim() === "*" || value.trim() === "") return "*";
  return originList(value, "* or origins such as https://app.example.com");
};

export const domainName: SettingReader<string> = (value) => {
  const name = value.trim().toLowerCase();
  if (URL.parse(`https://${name}`)?.hostname !== name || isIP(name) !== 0)
    throw new Error("a domain such as example.com");
  return name;
};

export const originList = (value: string, expected = "origins such as https://app.example.com"): readonly string[] => {
  const items = list(value);
  const odd = items.find((item) => URL.parse(item)?.origin !== item);
  if (odd !== undefined) throw new Error(expected);
  return items;
};

/** A path such as `.role` or `.realm_access."a role"[0]`, as in PostgREST. */
export const claimPath: SettingReader<ClaimPath> = (value) => {
  const path = parseClaimPath(value);
  if (path === null) throw new Error('a path such as .role or .app_metadata."user role"[0]');
  return path;
};

export type SettingDefinition<T> = {
  /** The canonical name, then aliases such as PostgREST's names. */
  readonly names: readonly [string, ...string[]];
  readonly read: SettingReader<T>;
  /** The default as text; null if there is none. */
  readonly fallback: string | null;
  readonly description: string;
  readonly secret: boolean;
};

type SettingNames = string | readonly [string, ...string[]];

export function withDefault<T>(
  names: SettingNames,
  read: SettingReader<T>,
  fallback: string,
  description: string,
): SettingDefinition<T> {
  return { names: typeof names === "string" ? [names] : names, read, fallback, description, secret: false };
}

export function optional<T>(
  names: SettingNames,
  read: SettingReader<T>,
  description: string,
): SettingDefinition<T | null> {
  return { names: typeof names === "string" ? [names] : names, read, fallback: null, description, secret: false };
}

export function secret<T>(
  names: SettingNames,
  read: SettingReader<T>,
  description: string,
): SettingDefinition<T | null> {
  return { ...optional(names, read, description), secret: true };
}
