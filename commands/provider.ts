import { type ListedProvider, makeProviders, type Providers } from "../engine/auth/federation/providers.ts";
import { deploymentKeys } from "../engine/caller/deployment-keys.ts";
import { withDatabaseSettings } from "../engine/config/config.ts";
import { readSecrets } from "../engine/secrets.ts";
import { tabulated } from "./columns.ts";
import { actionOf, runCommand, UsageError } from "./command.ts";
import { commandLine } from "./command-line.ts";
import { settingsOfDatabase } from "./in-force.ts";
import { PROVIDER_OPTIONS, readProvider } from "./new-provider.ts";
import { withOwner } from "./with-owner.ts";

type Options = Readonly<Record<string, unknown>>;
type Action = (providers: Providers, words: readonly string[], options: Options) => Promise<void>;

const ACTIONS: Readonly<Record<string, Action>> = {
  async add(providers, words, options) {
    if (words.length > 0) throw new UsageError(`"${words[0]}" is one word too many.`);
    const provider = await readProvider(options);
    await providers.add(provider);
    console.log(`Users can sign in at /auth/providers/${provider.name}/sign-in.
Tell the provider where they come back to: /auth/providers/${provider.name}/callback, behind PUBLIC_URL.`);
  },
  async list(providers, [word]) {
    if (word !== undefined) throw new UsageError(`"${word}" is one word too many.`);
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
    await providers.enable(name);
    console.log(`Users can sign in through ${name}.`);
  },
  async disable(providers, words) {
    const name = nameIn(words);
    await providers.disable(name);
    console.log(`Nobody can sign in through ${name}; who is signed in stays so.`);
  },
};

function lineOf({ name, kind, title, issuer, clientId, enabled, signUps, identities }: ListedProvider) {
  return { name, kind, title, issuer, clientId, state: enabled ? "enabled" : "disabled", signUps, identities };
}

function nameIn([name, ...others]: readonly string[]): string {
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
  async run(given, [action = "", ...words], options) {
    const act = actionOf(ACTIONS, "provider", action);
    const { config } = withDatabaseSettings(given, await settingsOfDatabase(given));
    const keys = () => deploymentKeys(config, readSecrets);
    await withOwner(config, (asOwner) => act(makeProviders(asOwner, keys), words, options));
  },
});
