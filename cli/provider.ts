import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { ProviderKind, ProviderSettings } from "../engine/accounts/federation/provider.ts";
import {
  type ListedProvider,
  makeProviders,
  type NewProvider,
  type Providers,
} from "../engine/accounts/federation/providers.ts";
import { isLoopback } from "../engine/accounts/federation/safe-fetch.ts";
import { withDatabaseSettings } from "../engine/config/config.ts";
import { loadDeploymentKeys } from "../engine/identity/token-keys.ts";
import { readSecrets } from "../engine/secrets.ts";
import { commandLine, findAction, runCommand, UsageError } from "./command.ts";
import { formatRecords } from "./text-table.ts";
import { tryReadDatabaseSettings, withOwner } from "./with-database.ts";

/** As the table has it. */
const PROVIDER_NAME = /^[a-z][a-z0-9-]*$/;
const PROVIDER_KINDS: readonly ProviderKind[] = ["oidc", "oauth2", "saml"];
const MAPPED_CLAIMS = ["subject", "email", "email_verified", "name"] as const;

const TEXT_OPTIONS = [
  ...["kind", "name", "issuer", "title", "scope", "client-id", "client-secret", "client-secret-file"],
  ...["auth-url", "authorization-url", "token-url", "userinfo-url"],
  ...["entry-point", "logout-url", "certificate", "key", "our-certificate", "name-id-format"],
  ...MAPPED_CLAIMS.map((claim) => `${claim.replace("_", "-")}-claim`),
];
const FLAG_OPTIONS = ["no-sign-ups", "trust-email", "trust-factor", "private-network"];

/** How a line says what a new provider is. */
export const PROVIDER_OPTIONS = Object.fromEntries([
  ...TEXT_OPTIONS.map((name) => [name, { type: "string" }] as const),
  ...FLAG_OPTIONS.map((name) => [name, { type: "boolean" }] as const),
]);

type ProviderOptions = Readonly<Record<string, unknown>>;
type ProviderAction = (providers: Providers, args: readonly string[], options: ProviderOptions) => Promise<void>;

const ACTIONS: Readonly<Record<string, ProviderAction>> = {
  async add(providers, args, options) {
    if (args.length > 0) throw new UsageError(`"${args[0]}" is one word too many.`);
    const provider = await parseProvider(options);
    await providers.add(provider);
    console.log(`Users can sign in at /auth/providers/${provider.name}/sign-in.
Tell the provider where they come back to: /auth/providers/${provider.name}/callback, behind PUBLIC_URL.`);
  },
  async list(providers, [word]) {
    if (word !== undefined) throw new UsageError(`"${word}" is one word too many.`);
    const all = await providers.list();
    if (all.length > 0) console.log(formatRecords(all.map(toProviderRecord)));
    else console.log("There are no providers.");
  },
  async remove(providers, args) {
    const name = parseName(args);
    await providers.remove(name);
    console.log(`${name} is gone, and so are the identities that it gave; the accounts stay.`);
  },
  async enable(providers, args) {
    const name = parseName(args);
    await providers.enable(name);
    console.log(`Users can sign in through ${name}.`);
  },
  async disable(providers, args) {
    const name = parseName(args);
    await providers.disable(name);
    console.log(`Nobody can sign in through ${name}; who is signed in stays so.`);
  },
};

function toProviderRecord({ name, kind, title, issuer, clientId, enabled, signUps, identities }: ListedProvider) {
  return { name, kind, title, issuer, clientId, state: enabled ? "enabled" : "disabled", signUps, identities };
}

function parseName([name, ...others]: readonly string[]): string {
  if (!name || others.length > 0) throw new UsageError("Say which provider, by the name that list shows.");
  return name;
}

await runCommand({
  usage: `${commandLine("provider", "add --kind oidc --name N --issuer URL --client-id ID")}
    [--client-secret-file F | --client-secret S]
${commandLine("provider", "add --kind oauth2 --name N --issuer URL --client-id ID --auth-url URL")}
    [--client-secret-file F]   (or --authorization-url, --token-url and --userinfo-url)
${commandLine("provider", "add --kind saml --name N --issuer ENTITY-ID --entry-point URL --certificate FILE")}
    [--logout-url URL] [--client-id OUR-ENTITY-ID] [--key FILE --our-certificate FILE] [--name-id-format F]
  lets users sign in through a provider; of any kind:
    [--title T] [--scope S] [--no-sign-ups] [--trust-email] [--trust-factor] [--private-network]
  where it tells what:
    [--subject-claim C] [--email-claim C] [--email-verified-claim C] [--name-claim C]
${commandLine("provider", "list")}
  prints the providers there are
${commandLine("provider", "disable N")}
  nobody signs in through it; enable N undoes that
${commandLine("provider", "remove N")}
  ends it: the accounts stay, the identities go

Example:
  ${commandLine("provider", "add --kind oidc --name google --title Google --issuer https://accounts.google.com")} \\
    --client-id 1234.apps.googleusercontent.com --client-secret-file google.secret`,
  options: PROVIDER_OPTIONS,
  async run(baseConfig, [action = "", ...args], options) {
    const act = findAction(ACTIONS, "provider", action);
    const { config } = withDatabaseSettings(baseConfig, await tryReadDatabaseSettings(baseConfig));
    const keys = () => loadDeploymentKeys(config, readSecrets);
    await withOwner(config, (asOwner) => act(makeProviders(asOwner, keys), args, options));
  },
});

type ProviderFlags = Readonly<Record<string, unknown>>;
type TextOption = (name: string) => string | null;

/** Refuses what is no provider of its kind; reads the files that are named. */
export async function parseProvider(options: ProviderFlags): Promise<NewProvider> {
  const text: TextOption = (name) => (typeof options[name] === "string" && options[name] !== "" ? options[name] : null);
  const kind = PROVIDER_KINDS.find((each) => each === options.kind);
  const [name, issuer] = [text("name"), text("issuer")];
  if (!kind || name === null)
    throw new UsageError(`A new provider wants a --kind (${PROVIDER_KINDS.join(", ")}) and a --name.`);
  if (!PROVIDER_NAME.test(name))
    throw new UsageError("A --name has small letters, digits and hyphens: it stands in addresses.");
  if (issuer === null) throw new UsageError("A new provider wants an --issuer: what it calls itself.");
  if (kind !== "saml" && text("client-id") === null)
    throw new UsageError("A provider of that kind wants a --client-id.");
  if (kind === "oidc") requireHttps("issuer", issuer);
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
      ...parseCommonSettings(text, options),
      ...(kind === "oauth2" && parseEndpoints(text)),
      ...(kind === "saml" && (await readSamlSettings(text))),
    },
  };
}

/** What cannot be asked is refused here: otherwise the first who signs in would find out. */
function requireHttps(option: string, address: string): void {
  const url = URL.parse(address);
  if (url?.protocol === "https:" || (url?.protocol === "http:" && isLoopback(url))) return;
  throw new UsageError(`--${option} is to be an https address, or one of this machine.`);
}

/** From a file, or a pipe, it does not stand in the list of processes. Of SAML it is the key that signs our requests. */
async function readSecret(kind: ProviderKind, text: TextOption): Promise<string | null> {
  const file = text("client-secret-file") ?? text("key");
  const secret = file === null ? text("client-secret") : (await readFile(file, "utf8")).trim();
  if (kind === "saml" && secret !== null) requirePem(() => createPrivateKey(secret), "There is no private key");
  return secret;
}

function requirePem(read: () => unknown, fault: string): void {
  try {
    read();
  } catch {
    throw new UsageError(`${fault} in PEM form in that file.`);
  }
}

function parseCommonSettings(text: TextOption, options: ProviderFlags): ProviderSettings {
  const claims = MAPPED_CLAIMS.flatMap((claim) => {
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

function parseEndpoints(text: TextOption): ProviderSettings {
  const base = text("auth-url")?.replace(/\/+$/, "") ?? null;
  const endpoint = (option: string, step: string) => {
    const address = text(option) ?? (base === null ? null : `${base}/${step}`);
    if (address === null) throw new UsageError(`Say its --auth-url, or its --${option}.`);
    requireHttps(text(option) === null ? "auth-url" : option, address);
    return address;
  };
  return {
    authorization_endpoint: endpoint("authorization-url", "authorize"),
    token_endpoint: endpoint("token-url", "token"),
    userinfo_endpoint: endpoint("userinfo-url", "userinfo"),
  };
}

async function readSamlSettings(text: TextOption): Promise<ProviderSettings> {
  const [entryPoint, certificate] = [text("entry-point"), text("certificate")];
  if (entryPoint === null || certificate === null) {
    throw new UsageError("A provider of SAML wants an --entry-point, and a --certificate in a file.");
  }
  const certificates = (await readFile(certificate, "utf8")).match(
    /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g,
  );
  if (!certificates) throw new UsageError("There is no certificate in PEM form in that file.");
  for (const each of certificates) requirePem(() => new X509Certificate(each), "There is no certificate");
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
