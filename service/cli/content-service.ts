import { existsSync, readFileSync } from "node:fs";
import { readProjectSettings } from "#config";
import { didYouMean, PACKAGE_NAME, setPackageProgram } from "#runtime";
import { EXIT_FAILURE, EXIT_USAGE } from "./command/command.ts";

/** The commands, by the first argument. */
const COMMANDS: Readonly<Record<string, { readonly about: string; readonly run: () => Promise<unknown> }>> = {
  start: { about: "starts the service", run: () => startServer() },
  dev: {
    about: "starts the service, and applies the migration in current/ on every save",
    run: () => startServer("--dev"),
  },
  init: { about: "creates a project in a folder", run: () => import("./init.ts") },
  test: { about: "runs the policy tests in test/policies", run: () => import("./test-policies.ts") },
  migrate: { about: "applies migrations; commits, uncommits, resets", run: () => import("./migrate.ts") },
  branch: { about: "creates, lists and drops branches of the database", run: () => import("./branch.ts") },
  user: { about: "adds, disables and enables users, and assigns their roles", run: () => import("./user.ts") },
  keys: { about: "prints the deployment's keys; creates, lists and revokes others", run: () => import("./keys.ts") },
  provider: {
    about: "adds, lists and removes identity providers",
    run: () => import("./provider.ts"),
  },
  webhooks: {
    about: "lists webhooks and dead deliveries; replays, tests, rotates secrets",
    run: () => import("./webhooks.ts"),
  },
  config: { about: "prints the settings in effect", run: () => import("./config.ts") },
  types: { about: "prints TypeScript types of the database", run: () => import("./types.ts") },
  policies: {
    about: "tries each command on each table as each role, and prints the rows affected",
    run: () => import("./policies.ts"),
  },
  why: {
    about: "explains which rows a caller sees or may write, and which policies refuse the others",
    run: () => import("./why.ts"),
  },
  doctor: {
    about: "checks security, performance and configuration, and prints fixes",
    run: () => import("./doctor.ts"),
  },
  mcp: {
    about: "offers the documentation, the schema and the commands that check it to coding agents",
    run: () => import("./mcp.ts"),
  },
  backup: { about: "writes all rows to a file", run: () => import("./backup.ts") },
  restore: {
    about: "restores a backup, a time of the WAL archive, or rows of a table",
    run: () => import("./restore.ts"),
  },
  storage: { about: "copies files of a Supabase project", run: () => import("./storage.ts") },
  upgrade: {
    about: "brings the database to this version: migrations, and the embedded Postgres from an older major version",
    run: () => import("./upgrade.ts"),
  },
  sql: { about: "runs SQL as the database owner", run: () => import("./sql.ts") },
  psql: { about: "opens psql as the database owner", run: () => import("./psql.ts") },
  "database-url": { about: "prints the owner's connection string", run: () => import("./database-url.ts") },
};

async function startServer(...args: readonly string[]): Promise<void> {
  process.argv.push(...args);
  await import("../start-service.ts");
}

const width = Math.max(...Object.keys(COMMANDS).map((name) => name.length));
const USAGE = `${PACKAGE_NAME} <command> [--help]
${PACKAGE_NAME} --version

${Object.entries(COMMANDS)
  .map(([name, { about }]) => `  ${name.padEnd(width)}   ${about}`)
  .join("\n")}

In a clone, npm run <command> does the same.`;

setPackageProgram(process.env.npm_command === undefined ? PACKAGE_NAME : `npx ${PACKAGE_NAME}`);
// Removes the name of the command, so that it finds its own arguments.
const [name] = process.argv.splice(2, 1);
if (name !== undefined && Object.hasOwn(COMMANDS, name)) {
  if (name === "init" || loadProjectSettings()) await COMMANDS[name]!.run();
} else if (name === undefined || name === "--help" || name === "-h" || name === "help") {
  console.log(USAGE);
} else {
  failWithUsage(
    `${USAGE}\n\n${PACKAGE_NAME} has no command "${name}"${didYouMean(name, Object.keys(COMMANDS)) || "."}`,
  );
}

/** Reads .env and package.json of the working directory. The environment takes precedence over both. */
function loadProjectSettings(): boolean {
  try {
    if (existsSync(".env")) process.loadEnvFile();
    if (!existsSync("package.json")) return true;
    for (const [setting, value] of Object.entries(readProjectSettings(readFileSync("package.json", "utf8")))) {
      process.env[setting] ??= value;
    }
    return true;
  } catch (error) {
    console.error((error as Error).message);
    process.exitCode = EXIT_FAILURE;
    return false;
  }
}

function failWithUsage(message: string): void {
  console.error(message);
  process.exitCode = EXIT_USAGE;
}
