import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { ProviderKind, ProviderSettings } from "../engine/auth/federation/provider.ts";
import type { NewProvider } from "../engine/auth/federation/providers.ts";
import { isLoopback } from "../engine/auth/federation/safe-fetch.ts";
import { UsageError } from "./command.ts";

type Options = Readonly<Record<string, unknown>>;
type Text = (name: string) => string | null;

/** As the table has it. */
const NAME = /^[a-z][a-z0-9-]*$/;
const KINDS: readonly ProviderKind[] = ["oidc", "oauth2", "saml"];
const CLAIMS = ["subject", "email", "email_verified", "name"] as const;

const TEXTS = [
  ...["kind", "name", "issuer", "title", "scope", "client-id", "client-secret", "client-secret-file"],
  ...["auth-url", "authorization-url", "token-url", "userinfo-url"],
  ...["entry-point", "logout-url", "certificate", "key", "our-certificate", "name-id-format"],
  ...CLAIMS.map((claim) => `${claim.replace("_", "-")}-claim`),
];
const FLAGS = ["no-sign-ups", "trust-email", "trust-factor", "private-network"];

/** How a line says what a new provider is. */
export const PROVIDER_OPTIONS = Object.fromEntries([
  ...TEXTS.map((name) => [name, { type: "string" }] as const),
  ...FLAGS.map((name) => [name, { type: "boolean" }] as const),
]);

/** Refuses what is no provider of its kind; reads the files that are named. */
export async function readProvider(options: Options): Promise<NewProvider> {
  const text: Text = (name) => (typeof options[name] === "string" && options[name] !== "" ? options[name] : null);
  const kind = KINDS.find((each) => each === options.kind);
  const [name, issuer] = [text("name"), text("issuer")];
  if (!kind || name === null) throw new UsageError(`A new provider wants a --kind (${KINDS.join(", ")}) and a --name.`);
  if (!NAME.test(name)) throw new UsageError("A --name has small letters, digits and hyphens: it stands in addresses.");
  if (issuer === null) throw new UsageError("A new provider wants an --issuer: what it calls itself.");
  if (kind !== "saml" && text("client-id") === null)
    throw new UsageError("A provider of that kind wants a --client-id.");
  if (kind === "oidc") checkAddress("issuer", issuer);
  return {
    name,
    kind,
    issuer,
    title: text("title"),
    clientId: text("client-id"),
    secret: await readSecret(kind, text),
    signUps: options["no-sign-ups"] !== true,
    trustsEmail: options["trust-email"] === true,
    trustsFactor: options["trust-factor"] === true,
    settings: {
      ...readShared(text, options),
      ...(kind === "oauth2" && readEndpoints(text)),
      ...(kind === "saml" && (await readSaml(text))),
    },
  };
}

/** What cannot be asked is refused here: otherwise the first who signs in would find out. */
function checkAddress(option: string, address: string): void {
  const url = URL.parse(address);
  if (url?.protocol === "https:" || (url?.protocol === "http:" && isLoopback(url))) return;
  throw new UsageError(`--${option} is to be an https address, or one of this machine.`);
}

/** From a file, or a pipe, it does not stand in the list of processes. Of SAML it is the key that signs our requests. */
async function readSecret(kind: ProviderKind, text: Text): Promise<string | null> {
  const file = text("client-secret-file") ?? text("key");
  const secret = file === null ? text("client-secret") : (await readFile(file, "utf8")).trim();
  if (kind === "saml" && secret !== null) readPem(() => createPrivateKey(secret), "There is no private key");
  return secret;
}

function readPem(read: () => unknown, fault: string): void {
  try {
    read();
  } catch {
    throw new UsageError(`${fault} in PEM form in that file.`);
  }
}

function readShared(text: Text, options: Options): ProviderSettings {
  const claims = CLAIMS.flatMap((claim) => {
    const name = text(`${claim.replace("_", "-")}-claim`);
    return name === null ? [] : [[claim, name] as const];
  });
  const scope = text("scope");
  return {
    ...(scope !== null && { scope }),
    ...(claims.length > 0 && { claims: Object.fromEntries(claims) }),
    ...(options["private-network"] === true && { private_network: true }),
  };
}

function readEndpoints(text: Text): ProviderSettings {
  const base = text("auth-url")?.replace(/\/+$/, "") ?? null;
  const endpoint = (option: string, step: string) => {
    const address = text(option) ?? (base === null ? null : `${base}/${step}`);
    if (address === null) throw new UsageError(`Say its --auth-url, or its --${option}.`);
    checkAddress(text(option) === null ? "auth-url" : option, address);
    return address;
  };
  return {
    authorization_endpoint: endpoint("authorization-url", "authorize"),
    token_endpoint: endpoint("token-url", "token"),
    userinfo_endpoint: endpoint("userinfo-url", "userinfo"),
  };
}

async function readSaml(text: Text): Promise<ProviderSettings> {
  const [entryPoint, certificate] = [text("entry-point"), text("certificate")];
  if (entryPoint === null || certificate === null) {
    throw new UsageError("A provider of SAML wants an --entry-point, and a --certificate in a file.");
  }
  const certificates = (await readFile(certificate, "utf8")).match(
    /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g,
  );
  if (!certificates) throw new UsageError("There is no certificate in PEM form in that file.");
  for (const each of certificates) readPem(() => new X509Certificate(each), "There is no certificate");
  const [logoutUrl, ours, nameIdFormat] = [text("logout-url"), text("our-certificate"), text("name-id-format")];
  for (const [option, address] of Object.entries({ "entry-point": entryPoint, "logout-url": logoutUrl })) {
    // The browser asks there, and not we.
    if (address !== null && !/^https?:$/.test(URL.parse(address)?.protocol ?? ""))
      throw new UsageError(`--${option} is to be an address that a browser can open.`);
  }
  return {
    entry_point: entryPoint,
    certificates,
    ...(logoutUrl !== null && { logout_url: logoutUrl }),
    ...(ours !== null && { certificate: await readFile(ours, "utf8") }),
    ...(nameIdFormat !== null && { name_id_format: nameIdFormat }),
  };
}
