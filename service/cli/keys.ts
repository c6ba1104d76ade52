import { type ApiKey, type ApiKeys, makeApiKeys, parseExpiryDate } from "#accounts/api-keys";
import { loadDeploymentKeys, makeProjectKeys, makeRoleKey, requireIssuingKeys } from "#accounts/identity";
import { type Config, withDatabaseSettings } from "#config";
import { commandLine, readSecrets } from "#runtime";
import { findAction, formatRecords, runCommand, UsageError } from "./command/command.ts";
import { tryReadDatabaseSettings, withOwner } from "./command/command-context.ts";

type KeysOptions = Readonly<Record<string, unknown>>;
type KeysAction = (keys: ApiKeys, args: readonly string[], options: KeysOptions) => Promise<void>;

const DEPLOYMENT_KEY_OPTIONS = ["--anon", "--service-role", "--publishable", "--secret"];

const ACTIONS: Readonly<Record<string, KeysAction>> = {
  async create(keys, args, { role, owner, expires, name }) {
    if (args.length > 0 || typeof role !== "string") throw new UsageError("--role is required.");
    const { id, key } = await keys.create({
      role,
      ownerId: owner === undefined ? null : parseKeyId(String(owner)),
      expiresAt: expires === undefined ? null : parseExpiry(String(expires)),
      name: typeof name === "string" ? name : "",
    });
    console.log(`Key ${id} (it is not shown again):\n${key}`);
  },
  async list(keys, [word], { json }) {
    if (word !== undefined) throw new UsageError(`Unexpected argument "${word}".`);
    const all = await keys.list();
    if (json) console.log(JSON.stringify(all.map(toKeyRecord), null, 2));
    else if (all.length > 0) console.log(formatRecords(all.map(toKeyRecord)));
    else console.log("No keys found.");
  },
  async revoke(keys, [id, ...others]) {
    if (!id || others.length > 0) throw new UsageError("Specify the id of a key, as printed by list.");
    await keys.revoke(parseKeyId(id));
    console.log(`Key ${id} is revoked; gateways reject it within five seconds.`);
  },
};

async function printDeploymentKeys(baseConfig: Config, options: KeysOptions): Promise<void> {
  const { config } = withDatabaseSettings(baseConfig, await tryReadDatabaseSettings(baseConfig));
  const keys = requireIssuingKeys(await loadDeploymentKeys(config, readSecrets));
  const keyOf = (role: string) => makeRoleKey(role, keys, config);
  const { publishable, secret } = makeProjectKeys(keys);
  const keyByOption = {
    anon: keyOf(config.anonRole),
    "service-role": keyOf("service_role"),
    publishable,
    secret,
  };
  const chosen = Object.entries(keyByOption).filter(([option]) => options[option]);
  if (chosen.length > 1) throw new UsageError(`Give one of ${DEPLOYMENT_KEY_OPTIONS.join(", ")}.`);
  if (chosen[0]) return console.log(chosen[0][1]);
  if (options.json) return console.log(JSON.stringify(keyByOption, null, 2));
  console.log(`anon key (public, restricted by row-level security):
${keyOf(config.anonRole)}

service_role key (secret, bypasses row-level security; for servers only):
${keyOf("service_role")}`);
}

function toKeyRecord({ id, prefix, role, ownerId, name, expiresAt, revokedAt, lastUsedAt }: ApiKey) {
  const state = revokedAt ? "revoked" : expiresAt && expiresAt <= new Date() ? "expired" : "good";
  return { id, begins: prefix, role, owner: ownerId, name, state, expires: expiresAt, lastUsed: lastUsedAt };
}

function parseKeyId(text: string): string {
  if (/^[1-9]\d{0,17}$/.test(text)) return text;
  throw new UsageError(`"${text}" is not an id.`);
}

/** `2027-12-31`, or with a time of day. */
function parseExpiry(text: string): Date {
  const date = parseExpiryDate(text);
  if (date) return date;
  throw new UsageError(`"${text}" is not a date such as 2027-12-31.`);
}

await runCommand({
  usage: `${commandLine("keys", "[--anon | --service-role | --publishable | --secret | --json]")}
  Prints the deployment's anon and service_role keys, or one key alone; --publishable and --secret are these two in Supabase's newer form. --json has all four.
${commandLine("keys", "create --role R [--owner ID] [--expires DATE] [--name N]")}
  Creates an API key and prints it, once.
${commandLine("keys", "list [--json]")}
  Lists the API keys.
${commandLine("keys", "revoke ID")}
  Revokes an API key.

Examples:
  ANON_KEY=$(${commandLine("keys", "--anon", { silent: true })})
  ${commandLine("keys", "create --role service_role --name backup --expires 2027-12-31")}`,
  options: {
    anon: { type: "boolean" },
    "service-role": { type: "boolean" },
    publishable: { type: "boolean" },
    secret: { type: "boolean" },
    role: { type: "string" },
    owner: { type: "string" },
    expires: { type: "string" },
    name: { type: "string" },
    json: { type: "boolean" },
  },
  async run(config, [action, ...args], options) {
    if (action === undefined) return printDeploymentKeys(config, options);
    if (DEPLOYMENT_KEY_OPTIONS.some((option) => options[option.slice(2)]))
      throw new UsageError(`${DEPLOYMENT_KEY_OPTIONS.join(", ")} take no action.`);
    const act = findAction(ACTIONS, "keys", action);
    await withOwner(config, (asOwner) => act(makeApiKeys(asOwner), args, options));
  },
});
