import { resolve } from "node:path";
import { type Config, isEmbedded } from "#config";
import { commandLine } from "#runtime";

type BannerFacts = {
  readonly config: Pick<
    Config,
    "publicUrl" | "studio" | "graphqlExplorer" | "databaseUrl" | "dataDir" | "usersAccess" | "usersAccessReason"
  >;
  /** The address that the service listens on. */
  readonly url: string;
  /** The number of worker processes; null for a single process. */
  readonly workers: number | null;
  /** The address of metrics; null if they are not served apart. */
  readonly adminUrl: string | null;
  /** True if the example application has users, which USERS_ACCESS is about. */
  readonly hasUsers: boolean;
  /** The folder of the current migration that is applied on every save; null under `npm start`. */
  readonly currentFolder: string | null;
  readonly seconds: string;
};

const STUDIO_ACCESS: Readonly<Record<Config["studio"], string>> = {
  open: "open to browsers on this machine, and to administrators",
  administrators: "administrators only",
  off: "",
};
const USERS_ACCESS: Readonly<Record<Config["usersAccess"], string>> = {
  open: "everybody reads and changes users and drafts",
  owner: "only owners read and change users and drafts",
};

/** Writes what a start prints: where the service is, and what is open to whom. */
export function writeBanner(facts: BannerFacts): string {
  const { config, url, workers, adminUrl, hasUsers, currentFolder, seconds } = facts;
  const { publicUrl, studio, usersAccess, usersAccessReason } = config;
  const site = publicUrl ?? url;
  const lines: readonly (readonly [string, string | null])[] = [
    ["address", url],
    ["public", publicUrl],
    ["studio", studio === "off" ? null : `${site}/studio (${STUDIO_ACCESS[studio]})`],
    ["health", `${site}/health`],
    ["graphql", `${site}/graphql`],
    ["explorer", config.graphqlExplorer ? `${site}/graphiql` : null],
    ["workers", workers === null ? null : String(workers)],
    ["metrics", adminUrl === null ? null : `${adminUrl}/metrics`],
    ["data", isEmbedded(config) ? `${resolve(config.dataDir)} (embedded Postgres)` : "DATABASE_URL"],
    ["users", hasUsers ? `${usersAccess}: ${USERS_ACCESS[usersAccess]} (${usersAccessReason})` : null],
    ["keys", commandLine("keys")],
    ["psql", commandLine("psql")],
    ["migration", currentFolder === null ? null : `${currentFolder}, applied on every save`],
  ];
  const shown = lines.flatMap(([name, text]) => (text === null ? [] : [`  ${name.padEnd(10)} ${text}`]));
  return `\n${shown.join("\n")}\n\n  ready in ${seconds} s`;
}
