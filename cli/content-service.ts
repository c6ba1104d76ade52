import { findClosestName } from "../engine/edit-distance.ts";
import { EXIT_USAGE } from "./command.ts";

/** What the one command does, by its first word. */
const COMMANDS: Readonly<Record<string, { readonly about: string; readonly run: () => Promise<unknown> }>> = {
  start: { about: "serves, until Ctrl-C", run: () => startServer() },
  dev: {
    about: "serves, and applies the migration in current/ on every save",
    run: () => startServer("--dev"),
  },
  migrate: { about: "brings the schema up to date; commits, takes back, resets", run: () => import("./migrate.ts") },
  user: { about: "adds, disables, enables and promotes users", run: () => import("./user.ts") },
  keys: { about: "prints this deployment's keys; makes, lists and ends others", run: () => import("./keys.ts") },
  provider: {
    about: "adds and ends other providers that users may sign in through",
    run: () => import("./provider.ts"),
  },
  config: { about: "prints the settings in force", run: () => import("./config.ts") },
  types: { about: "prints TypeScript types of the database", run: () => import("./types.ts") },
  policies: {
    about: "tries every verb on every table as every role, and prints what was reached",
    run: () => import("./policies.ts"),
  },
  why: { about: "says which rows somebody sees, which are hidden and by which policy", run: () => import("./why.ts") },
  doctor: {
    about: "looks for what is open, slow or missing, and says how to mend it",
    run: () => import("./doctor.ts"),
  },
  backup: { about: "writes all rows into a file", run: () => import("./backup.ts") },
  restore: { about: "fills an empty database with the rows of a backup", run: () => import("./restore.ts") },
  upgrade: {
    about: "carries the embedded database over from an older major version of Postgres",
    run: () => import("./upgrade.ts"),
  },
  sql: { about: "runs SQL on the database, as its owner", run: () => import("./sql.ts") },
  psql: { about: "opens psql on the database, as its owner", run: () => import("./psql.ts") },
  "database-url": { about: "prints the owner's connection string", run: () => import("./database-url.ts") },
};

async function startServer(...ours: readonly string[]): Promise<void> {
  process.argv.push(...ours);
  await import("../server.ts");
}

const width = Math.max(...Object.keys(COMMANDS).map((name) => name.length));
const USAGE = `content-service <command> [--help]
content-service --version

${Object.entries(COMMANDS)
  .map(([name, { about }]) => `  ${name.padEnd(width)}   ${about}`)
  .join("\n")}

In a clone, each is npm run <command> too.`;

// The command reads what follows its name as if it had been called by itself.
const [name] = process.argv.splice(2, 1);
if (name !== undefined && Object.hasOwn(COMMANDS, name)) {
  await COMMANDS[name]!.run();
} else if (name === undefined || name === "--help" || name === "-h" || name === "help") {
  console.log(USAGE);
} else {
  const meant = findClosestName(name, Object.keys(COMMANDS));
  failWithUsage(`content-service has no command "${name}"${meant ? `; did you mean ${meant}?` : "."}\n\n${USAGE}`);
}

function failWithUsage(message: string): void {
  console.error(message);
  process.exitCode = EXIT_USAGE;
}
