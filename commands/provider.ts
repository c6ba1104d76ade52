import { readFile } from "node:fs/promises";
import type { ProviderKind, ProviderSettings } from "../engine/auth/federation/provider.ts";
import {
  type ListedProvider,
  makeProviders,
  type NewProvider,
  type Providers,
} from "../engine/auth/federation/providers.ts";
import { deploymentKeys } from "../engine/caller/deployment-keys.ts";
import { withDatabaseSettings } from "../engine/config/config.ts";
import { tabulated } from "./columns.ts";
import { runCommand, UsageError } from "./command.ts";
import { commandLine } from "./command-line.ts";
import { settingsOfDatabase } from "./in-force.ts";
import { withOwner } from "./with-owner.ts";

type Options = Readonly<Record<string, unknown>>;
type Action = (providers: Providers, words: readonly string[], options: Options) => Promise<void>;
type Text = (name: string) => string | null;

const KINDS: readonly ProviderKind[] = ["oidc", "oauth2", "saml"];
const CLAIMS = ["subject", "email", "email_verified", "name"] as const;

const ACTIONS: Readonly<Record<string, Action>> = {
  async add(providers, words, options) {
    if (words.length > 0) throw new UsageError(`"${words[0]}" is one word too many.`);
    const provider = await readProvider(options);
    await providers.add(provider);
    console.log(`Users can sign in at /auth/providers/${provider.name}/sign-in.
Tell the provider where they come back to: /auth/providers/${provider.name}/callback, behind PUBLIC_URL.`);
  },
  async list(providers) {
    const all = await providers.list();
    if (all.length > 0) console.log(tabulated(all.map(lineOf)));
    else console.log("There are no providers.");
  },
  async remove(providers, words) {
    const name = nameIn(words);
    await providers.remove(name);
    console.log(`${name} is gone, and so are the identities that it gave; the accounts stay.`);
  },
  async enable(providers, words) {
    const name = nameIn(words);
    await providers.enable(name, true);
    console.log(`Users can sign in through ${name}.`);
  },
  async disable(providers, words) {
    const name = nameIn(words);
    await providers.enable(name, false);
    console.log(`Nobody can sign in through ${name}; who is signed in stays so.`);
  },
};

async function readProvider(options: Options): Promise<NewProvider> {
  const text: Text = (name) => (typeof options[name] === "string" ? options[name] : null);
  const kind = KINDS.find((each) => each === options.kind);
  const [name, issuer] = [text("name"), text("issuer")];
  if (!kind || name === null) throw new UsageError(`A new provider wants a --kind (${KINDS.join(", ")}) and a --name.`);
  if (issuer === null) throw new UsageError("A new provider wants an --issuer: what it calls itself.");
  if (kind !== "saml" && text("client-id") === null)
    throw new UsageError("A provider of that kind wants a --client-id.");
  return {
    name,
    kind,
    issuer,
    title: text("title"),
    clientId: text("client-id"),
    secret: await readSecret(text),
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

/** From a file, or a pipe, it does not stand in the list of processes. */
async function readSecret(text: Text): Promise<string | null> {
  const file = text("client-secret-file") ?? text("key");
  return file === null ? text("client-secret") : (await readFile(file, "utf8")).trim();
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
    if (address === null || !URL.canParse(address)) throw new UsageError(`Say its --auth-url, or its --${option}.`);
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
  const [logoutUrl, ours, nameIdFormat] = [text("logout-url"), text("our-certificate"), text("name-id-format")];
  return {
    entry_point: entryPoint,
    certificates,
    ...(logoutUrl !== null && { logout_url: logoutUrl }),
    ...(ours !== null && { certificate: await readFile(ours, "utf8") }),
    ...(nameIdFormat !== null && { name_id_format: nameIdFormat }),
  };
}

function lineOf({ name, kind, title, issuer, clientId, enabled, signUps, identities }: ListedProvider) {
  return { name, kind, title, issuer, clientId, state: enabled ? "enabled" : "disabled", signUps, identities };
}

function nameIn([name, ...others]: readonly string[]): string {
  if (!name || others.length > 0) throw new UsageError("Say which provider, by the name that list shows.");
  return name;
}

const TEXTS = [
  ...["kind", "name", "issuer", "title", "scope", "client-id", "client-secret", "client-secret-file"],
  ...["auth-url", "authorization-url", "token-url", "userinfo-url"],
  ...["entry-point", "logout-url", "certificate", "key", "our-certificate", "name-id-format"],
  ...CLAIMS.map((claim) => `${claim.replace("_", "-")}-claim`),
];
const FLAGS = ["no-sign-ups", "trust-email", "trust-factor", "private-network"];

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
  options: Object.fromEntries([
    ...TEXTS.map((name) => [name, { type: "string" }] as const),
    ...FLAGS.map((name) => [name, { type: "boolean" }] as const),
  ]),
  async run(given, [action = "", ...words], options) {
    const act = Object.hasOwn(ACTIONS, action) ? ACTIONS[action] : undefined;
    if (!act) throw new UsageError(`"${action}" is not something that ${commandLine("provider")} does.`);
    const { config } = withDatabaseSettings(given, await settingsOfDatabase(given));
    const keys = await deploymentKeys(config);
    await withOwner(config, (asOwner) => act(makeProviders(asOwner, keys), words, options));
  },
});
