import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import {
  CLIENT_CALLBACK_PATH,
  type ListedProvider,
  makeProviders,
  type NewProvider,
  type ProviderKind,
  type ProviderSettings,
  type Providers,
} from "#accounts/federation";
import { loadDeploymentKeys, requireIssuingKeys } from "#accounts/identity";
import { withDatabaseSettings } from "#config";
import { commandLine, readSecrets } from "#runtime";
import { isLoopback } from "#runtime/safe-fetch";
import { findAction, formatRecords, runCommand, UsageError } from "./command/command.ts";
import { tryReadDatabaseSettings, withOwner } from "./command/command-context.ts";

/** The pattern of provider names, the same as in the column's constraint. */
const PROVIDER_NAME = /^[a-z][a-z0-9-]*$/;
const PROVIDER_KINDS: readonly ProviderKind[] = ["oidc", "oauth2", "saml"];
const MAPPED_CLAIMS = ["subject", "email", "email_verified", "name"] as const;

const TEXT_OPTIONS = [
  ...["kind", "name", "issuer", "title", "scope", "client-id", "client-secret", "client-secret-file"],
  ...["auth-url", "authorization-url", "token-url", "userinfo-url"],
  ...["domains", "more-client-ids"],
  ...["entry-point", "logout-url", "certificate", "key", "our-certificate", "name-id-format"],
  ...MAPPED_CLAIMS.map((claim) => `${claim.replace("_", "-")}-claim`),
];
const FLAG_OPTIONS = ["no-sign-ups", "trust-email", "trust-factor", "private-network"];

/** The options of `provider add`. */
const PROVIDER_OPTIONS = Object.fromEntries([
  ...TEXT_OPTIONS.map((name) => [name, { type: "string" }] as const),
  ...FLAG_OPTIONS.map((name) => [name, { type: "boolean" }] as const),
]);

type ProviderOptions = Readonly<Record<string, unknown>>;
type ProviderAction = (providers: Providers, args: readonly string[], options: ProviderOptions) => Promise<void>;

const ACTIONS: Readonly<Record<string, ProviderAction>> = {
  async add(providers, args, options) {
    if (args.length > 0) throw new UsageError(`Unexpected argument "${args[0]}".`);
    const provider = await parseProvider(options);
    await providers.add(provider);
    console.log(`Users can sign in at /auth/providers/${provider.name}/sign-in.
Register the redirect URI with the provider: /auth/providers/${provider.name}/callback, behind PUBLIC_URL${
      provider.kind === "saml" ? "." : `; for clients of /auth/v1 also ${CLIENT_CALLBACK_PATH}.`
    }`);
  },
  async list(providers, [word]) {
    if (word !== undefined) throw new UsageError(`Unexpected argument "${word}".`);
    const all = await providers.list();
    if (all.length > 0) console.log(formatRecords(all.map(toProviderRecord)));
    else console.log("No providers found.");
  },
  async remove(providers, args) {
    const name = parseName(args);
    await providers.remove(name);
    console.log(`${name} and its identities are removed; the accounts remain.`);
  },
  async enable(providers, args) {
    const name = parseName(args);
    await providers.enable(name);
    console.log(`Users can sign in through ${name}.`);
  },
  async disable(providers, args) {
    const name = parseName(args);
    await providers.disable(name);
    console.log(`${name} is disabled; sessions that exist remain.`);
  },
};

function toProviderRecord({ name, kind, title, issuer, clientId, enabled, signUps, identities }: ListedProvider) {
  return { name, kind, title, issuer, clientId, state: enabled ? "enabled" : "disabled", signUps, identities };
}

function parseName([name, ...others]: readonly string[]): string {
  if (!name || others.length > 0) throw new UsageError("Specify the name of a provider, as printed by list.");
  return name;
}

await runCommand({
  usage: `${commandLine("provider", "add --kind oidc --name N --issuer URL --client-id ID")}
    [--client-secret-file F | --client-secret S] [--more-client-ids ID,ID]
${commandLine("provider", "add --kind oauth2 --name N --issuer URL --client-id ID --auth-url URL")}
    [--client-secret-file F]   (or --authorization-url, --token-url and --userinfo-url)
${commandLine("provider", "add --kind saml --name N --issuer ENTITY-ID --entry-point URL --certificate FILE")}
    [--domains D,D] [--logout-url URL] [--client-id OUR-ENTITY-ID] [--key FILE --our-certificate FILE] [--name-id-format F]
  Adds an identity provider. Options for every kind:
    [--title T] [--scope S] [--no-sign-ups] [--trust-email] [--trust-factor] [--private-network]
  Names of claims:
    [--subject-claim C] [--email-claim C] [--email-verified-claim C] [--name-claim C]
${commandLine("provider", "list")}
  Lists the providers.
${commandLine("provider", "disable N")}
  Disables sign-in through the provider; enable N allows it again.
${commandLine("provider", "remove N")}
  Removes the provider and its identities; the accounts remain.

Example:
  ${commandLine("provider", "add --kind oidc --name google --title Google --issuer https://accounts.google.com")} \\
    --client-id 1234.apps.googleusercontent.com --client-secret-file google.secret`,
  options: PROVIDER_OPTIONS,
  async run(baseConfig, [action = "", ...args], options) {
    const act = findAction(ACTIONS, "provider", action);
    const { config } = withDatabaseSettings(baseConfig, await tryReadDatabaseSettings(baseConfig));
    const keys = async () => requireIssuingKeys(await loadDeploymentKeys(config, readSecrets));
    await withOwner(config, (asOwner) => act(makeProviders(asOwner, keys), args, options));
  },
});

type ProviderFlags = Readonly<Record<string, unknown>>;
type TextOption = (name: string) => string | null;

/** Validates the options of a new provider, and reads the files that they name. */
async function parseProvider(options: ProviderFlags): Promise<NewProvider> {
  const text: TextOption = (name) => (typeof options[name] === "string" && options[name] !== "" ? options[name] : null);
  const kind = PROVIDER_KINDS.find((each) => each === options.kind);
  const [name, issuer] = [text("name"), text("issuer")];
  if (!kind || name === null) throw new UsageError(`--kind (${PROVIDER_KINDS.join(", ")}) and --name are required.`);
  if (!PROVIDER_NAME.test(name))
    throw new UsageError("--name may have lower-case letters, digits and hyphens only, because it is part of URLs.");
  if (issuer === null) throw new UsageError("--issuer is required.");
  if (kind !== "saml" && text("client-id") === null)
    throw new UsageError("--client-id is required for this kind of provider.");
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

/** Checks the URL now, not at the first sign-in. */
function requireHttps(option: string, address: string): void {
  const url = URL.parse(address);
  if (url?.protocol === "https:" || (url?.protocol === "http:" && isLoopback(url))) return;
  throw new UsageError(`--${option} must be an https URL, or a loopback URL.`);
}

/** Reads the secret, from a file if possible, which keeps it out of process lists. For SAML it is the private key that signs requests. */
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
    ...parseLists(options),
  };
}

/** Parses options with several values, separated by commas. */
function parseLists(options: ProviderFlags): ProviderSettings {
  const listOf = (name: string) =>
    String(options[name] ?? "")
      .split(",")
      .map((item) => item.trim())
      .filter((item) => item !== "");
  const [domains, clientIds] = [listOf("domains").map((domain) => domain.toLowerCase()), listOf("more-client-ids")];
  return {
    ...(domains.length > 0 && { domains }),
    ...(clientIds.length > 0 && { client_ids: clientIds }),
  };
}

function parseEndpoints(text: TextOption): ProviderSettings {
  const base = text("auth-url")?.replace(/\/+$/, "") ?? null;
  const endpoint = (option: string, step: string) => {
    const address = text(option) ?? (base === null ? null : `${base}/${step}`);
    if (address === null) throw new UsageError(`Specify --auth-url or --${option}.`);
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
    throw new UsageError("--entry-point and --certificate are required for SAML.");
  }
  const certificates = (await readFile(certificate, "utf8")).match(
    /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g,
  );
  if (!certificates) throw new UsageError("There is no certificate in PEM form in that file.");
  for (const each of certificates) requirePem(() => new X509Certificate(each), "There is no certificate");
  const [logoutUrl, ownCertificate, nameIdFormat] = [
    text("logout-url"),
    text("our-certificate"),
    text("name-id-format"),
  ];
  for (const [option, address] of Object.entries({ "entry-point": entryPoint, "logout-url": logoutUrl })) {
    // Only the browser requests these URLs.
    if (address !== null && !/^https?:$/.test(URL.parse(address)?.protocol ?? ""))
      throw new UsageError(`--${option} must be an http or https URL.`);
  }
  return {
    entry_point: entryPoint,
    certificates,
    ...(logoutUrl !== null && { logout_url: logoutUrl }),
    ...(ownCertificate !== null && { certificate: await readFile(ownCertificate, "utf8") }),
    ...(nameIdFormat !== null && { name_id_format: nameIdFormat }),
  };
}
