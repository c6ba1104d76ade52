import type { Catalog } from "#catalog";
import { openFileStore } from "#files";
import { collectFindings, type DoctorFinding } from "#operations/doctor";
import type { GraphqlTableNames } from "#plugins";
import { quotedName } from "#postgres/client";
import { tableAddresses } from "#rest-gateway/resource/collections";
import { commandLine } from "#runtime";
import { runCommand, UsageError } from "./command/command.ts";
import { withCatalog } from "./command/command-context.ts";
import { readConfigFindings } from "./supabase/config-checks.ts";

function printFindings(findings: readonly DoctorFinding[]): void {
  if (findings.length === 0) console.log("No problems found.");
  for (const { kind, problem, fix } of findings) console.log(`${kind.padEnd(6)}  ${problem}\n        ${fix}\n`);
}

await runCommand({
  usage: `${commandLine("doctor")}
  Checks security, performance and configuration, and prints a fix for each problem. Exits with 1 if a problem is dangerous.

${commandLine("doctor", "--names")}
  Lists the REST path and the GraphQL names of each table.`,
  options: { names: { type: "boolean" } },
  async run(baseConfig, args, { names }) {
    if (args.length > 0) throw new UsageError(`Unexpected argument "${args[0]}".`);
    if (names) {
      const lines = await withCatalog(baseConfig, async ({ catalog, config, postgres }) => {
        const { buildGraphQL } = await import("../contract/build-graphql.ts");
        return formatTableNames(catalog, (await buildGraphQL(catalog, config, postgres)).tableNames());
      });
      for (const line of lines) console.log(line);
      return;
    }
    const findings = await withCatalog(baseConfig, async ({ catalog, config, postgres }) => [
      ...(await collectFindings({
        catalog,
        config,
        postgres,
        findOmitted: async () => {
          const { buildGraphQL } = await import("../contract/build-graphql.ts");
          return (await buildGraphQL(catalog, config, postgres)).omitted;
        },
        comparesMigrations: true,
        fileStore: openFileStore(config),
      })),
      ...(await readConfigFindings(process.cwd(), config, postgres.directUrl)),
    ]);
    printFindings(findings);
    if (findings.some(({ kind }) => kind === "danger")) process.exitCode = 1;
  },
});

/** The name of each exposed table in SQL, REST and GraphQL, one line per table. */
function formatTableNames(catalog: Catalog, inGraphQL: readonly GraphqlTableNames[]): string[] {
  const graphqlNames = new Map(inGraphQL.map((names) => [quotedName(names.schema, names.table), names]));
  const rows = [...tableAddresses(catalog).tables].map(([address, { schema, name }]) => {
    const { type = "-", fields = [] } = graphqlNames.get(quotedName(schema, name)) ?? {};
    return [`${schema}.${name}`, `/api/v1/${address}`, [type, ...fields].join(" ")];
  });
  rows.sort(([one], [other]) => (one! < other! ? -1 : 1));
  const all = [["table", "REST", "GraphQL: type, fields"], ...rows];
  const widths = [0, 1].map((column) => Math.max(...all.map((row) => row[column]!.length)));
  return all.map(([table, address, graphql]) => {
    return `${table!.padEnd(widths[0]!)}  ${address!.padEnd(widths[1]!)}  ${graphql}`;
  });
}
