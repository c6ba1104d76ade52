import { type ApiKey, type ApiKeys, makeApiKeys } from "../engine/auth/api-keys.ts";
import { deploymentKeys } from "../engine/caller/deployment-keys.ts";
import { roleKey } from "../engine/caller/role-key.ts";
import { type Config, withDatabaseSettings } from "../engine/config/config.ts";
import { readMoment } from "../engine/moment.ts";
import { readSecrets } from "../engine/secrets.ts";
import { tabulated } from "./columns.ts";
import { actionOf, runCommand, UsageError } from "./command.ts";
import { commandLine } from "./command-line.ts";
import { settingsOfDatabase } from "./in-force.ts";
import { withOwner } from "./with-owner.ts";

type Options = Readonly<Record<string, unknown>>;
type Action = (keys: ApiKeys, words: readonly string[], options: Options) => Promise<void>;

const ACTIONS: Readonly<Record<string, Action>> = {
  async create(keys, words, { role, owner, expires, name }) {
    if (words.length > 0 || typeof role !== "string") throw new UsageError("A new key wants a --role.");
    const { id, key } = await keys.create({
      role,
      ownerId: owner === undefined ? null : readId(String(owner)),
      expiresAt: expires === undefined ? null : readDate(String(expires)),
      name: typeof name === "string" ? name : "",
    });
    console.log(`Key ${id}, which is shown this once:\n${key}`);
  },
  async list(keys, [word]) {
    if (word !== undefined) throw new UsageError(`"${word}" is one word too many.`);
    const all = await keys.list();
    if (all.length > 0) console.log(tabulated(all.map(lineOf)));
    else console.log("There are no keys.");
  },
  async revoke(keys, [id, ...others]) {
    if (!id || others.length > 0) throw new UsageError("Say which key, by the id that list shows.");
    await keys.revoke(readId(id));
    console.log(`Key ${id} ends within five seconds.`);
  },
};

async function printDeploymentKeys(given: Config): Promise<void> {
  const { config } = withDatabaseSettings(given, await settingsOfDatabase(given));
  const keys = await deploymentKeys(config, readSecrets);
  const keyOf = (role: string) => roleKey(role, keys, config);
  console.log(`anon key (for clients; row-level policies bound what it reaches):
${keyOf(config.anonRole)}

service_role key (bypasses policies; for servers only, keep it secret):
${keyOf("service_role")}`);
}

function lineOf({ id, prefix, role, ownerId, name, expiresAt, revokedAt, lastUsedAt }: ApiKey) {
  const state = revokedAt ? "revoked" : expiresAt && expiresAt <= new Date() ? "expired" : "good";
  return { id, begins: prefix, role, owner: ownerId, name, state, expires: expiresAt, lastUsed: lastUsedAt };
}

function readId(text: string): string {
  if (/^[1-9]\d{0,17}$/.test(text)) return text;
  throw new UsageError(`"${text}" is no id.`);
}

/** `2027-12-31`, or with a time of day. */
function readDate(text: string): Date {
  const date = readMoment(text);
  if (date) return date;
  throw new UsageError(`"${text}" is no date; write it like 2027-12-31.`);
}

await runCommand({
  usage: `${commandLine("keys")}
  prints this deployment's two keys
${commandLine("keys", "create --role R [--owner ID] [--expires DATE] [--name N]")}
  makes a key of a program, and shows it once
${commandLine("keys", "list")}
  prints the keys there are
${commandLine("keys", "revoke ID")}
  ends a key

Examples:
  ANON_KEY=$(${commandLine("keys", "", { silent: true })} | sed -n 2p)
  ${commandLine("keys", "create --role service_role --name backup --expires 2027-12-31")}`,
  options: {
    role: { type: "string" },
    owner: { type: "string" },
    expires: { type: "string" },
    name: { type: "string" },
  },
  async run(config, [action, ...words], options) {
    if (action === undefined) return printDeploymentKeys(config);
    const act = actionOf(ACTIONS, "keys", action);
    await withOwner(config, (asOwner) => act(makeApiKeys(asOwner), words, options));
  },
});
