import { readFile } from "node:fs/promises";
import { Administration, generateSecret, readAccountRows } from "#accounts";
import { commandLine } from "#runtime";
import { findAction, runCommand, UsageError } from "./command/command.ts";
import { withOwner } from "./command/command-context.ts";

type UserOptions = Readonly<Record<string, unknown>>;
type UserAction = (administration: Administration, args: readonly string[], options: UserOptions) => Promise<void>;

const ACTIONS: Readonly<Record<string, UserAction>> = {
  async add(administration, args, { email, name, password, admin }) {
    if (args.length > 0 || typeof email !== "string" || typeof name !== "string") {
      throw new UsageError("--email and --name are required.");
    }
    const chosen = typeof password === "string" ? password : null;
    const initialPassword = chosen ?? randomPassword();
    const role = admin ? "admin" : "authenticated";
    const { id } = await administration.add({ name, email, role, password: initialPassword });
    console.log(`Created ${admin ? "administrator" : "user"} ${id} with the e-mail address ${email}.`);
    if (!chosen) console.log(`password: ${initialPassword}`);
  },
  async import(administration, [file, ...others]) {
    if (!file || others.length > 0) throw new UsageError("Specify a file.");
    const { users, identities, missingProviders, refused } = await administration.import(
      readAccountRows(await readFile(file, "utf8")),
    );
    console.log(`users: ${summarize(users)}`);
    console.log(`identities: ${summarize(identities)}`);
    for (const email of refused) console.log(`refused: ${email}`);
    for (const name of missingProviders) console.log(`There is no provider ${name}: add it, then import again.`);
  },
  async disable(administration, [name, ...others]) {
    await administration.disable(parseUserName(name, others));
    console.log(`${name} is disabled and signed out of all sessions.`);
  },
  async enable(administration, [name, ...others]) {
    await administration.enable(parseUserName(name, others));
    console.log(`${name} can sign in.`);
  },
  async role(administration, [name, role, ...others]) {
    if (!role || others.length > 0) throw new UsageError("Specify a user and a role.");
    await administration.assignRole(parseUserName(name, []), role);
    console.log(`${name} acts as ${role} after the next sign-in or token refresh.`);
  },
};

/** Formats counts as `3 imported, 1 known`. */
function summarize(counts: Readonly<Record<string, number>>): string {
  const parts = Object.entries(counts).map(([outcome, count]) => `${count} ${outcome.replace("_", " ")}`);
  return parts.join(", ") || "none";
}

function parseUserName(name: string | undefined, others: readonly string[]): string {
  if (!name || others.length > 0) throw new UsageError("Specify a user, by e-mail address or user name.");
  return name;
}

/** Generates a password. The suffix satisfies the password policy, which random characters may not. */
function randomPassword(): string {
  return `${generateSecret().slice(0, 20)}-Aa1`;
}

await runCommand({
  usage: `${commandLine("user", "add --email E --name N [--admin] [--password P]")}
  Adds a user. Without --password, a password is generated and printed.
${commandLine("user", "import FILE")}
  Imports accounts from a dump of Supabase's auth.users and auth.identities, or from JSON. Those that exist stay as they are.
${commandLine("user", "disable E")}
  Disables the user and ends all sessions.
${commandLine("user", "enable E")}
  Enables the user again.
${commandLine("user", "role E ROLE")}
  Assigns a role: authenticated or admin.

Example:
  ${commandLine("user", "add --email ada@example.org --name Ada --admin")}`,
  options: {
    email: { type: "string" },
    name: { type: "string" },
    password: { type: "string" },
    admin: { type: "boolean" },
  },
  async run(config, [action = "", ...args], options) {
    const act = findAction(ACTIONS, "user", action);
    await withOwner(config, (asOwner) =>
      act(new Administration({ asOwner, policy: config.passwordPolicy }), args, options),
    );
  },
});
