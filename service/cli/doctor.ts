import type { Catalog } from "#catalog";
import { openFileStore } from "#files";
import type { FindingList } from "#operations/admin-types";
import { collectFindings, type DoctorFinding, findMigrationSql } from "#operations/doctor";
import type { GraphqlTableNames } from "#plugins";
import { quotedName } from "#postgres/client";
import { tableAddresses } from "#rest-gateway/resource/collections";
import { commandLine } from "#runtime";
import { EXIT_FAILURE, runCommand, UsageError } from "./command/command.ts";
import { type CatalogCommandContext, withCatalog } from "./command/command-context.ts";
import { withProgress } from "./command/progress.ts";
import { readConfigFindings } from "./supabase/config-checks.ts";

/** The exit code with `--strict` if there is advice, and no error. */
const EXIT_ADVICE = 3;

const LABELS: Readonly<Record<DoctorFinding["kind"], string>> = { danger: "error", advice: "advice", slow: "slow" };

function printFindings(findings: readonly DoctorFinding[]): void {
  for (const { kind, problem, fix } of findings) console.log(`${LABELS[kind].padEnd(6)}  ${problem}\n        ${fix}\n`);
  console.log(findings.length === 0 ? "No problems found." : formatCounts(countFindings(findings)));
}

type FindingCounts = { readonly errors: number; readonly advice: number; readonly slow: number };

function countFindings(findings: readonly DoctorFinding[]): FindingCounts {
  const count = (kind: DoctorFinding["kind"]) => findings.filter((finding) => finding.kind === kind).length;
  return { errors: count("danger"), advice: count("advice"), slow: count("slow") };
}

/** `1 error, 2 pieces of advice` */
function formatCounts({ errors, advice, slow }: FindingCounts): string {
  const format = (count: number, one: string, several: string) =>
    count === 0 ? [] : [count === 1 ? `1 ${one}` : `${count} ${several}`];
  return [
    ...format(errors, "error", "errors"),
    ...format(advice, "piece of advice", "pieces of advice"),
    ...format(slow, "slow query or policy", "slow queries or policies"),
  ].join(", ");
}

function printJson(findings: readonly DoctorFinding[]): void {
  const list: FindingList & { readonly summary: FindingCounts } = {
    findings: findings.map((finding) => ({ ...finding, sql: findMigrationSql(finding.fix) })),
    summary: countFindings(findings),
  };
  console.log(JSON.stringify(list, null, 2));
}

await runCommand({
  usage: `${commandLine("doctor")}
  Checks security, performance and configuration, and prints a fix for each problem. The last line counts them.
  Exits with 1 if there is an error, and else with 0.

${commandLine("doctor", "--strict")}
  Exits with ${EXIT_ADVICE} if there is no error, but advice or something slow.

${commandLine("doctor", "--json")}
  Prints JSON: findings (kind: danger, advice or slow; problem; fix; sql for a migration, or null), and their numbers as summary.

${commandLine("doctor", "--names")}
  Lists the REST path and the GraphQL names of each table.`,
  options: { names: { type: "boolean" }, json: { type: "boolean" }, strict: { type: "boolean" } },
  async run(baseConfig, args, { names, json, strict }) {
    if (args.length > 0) throw new UsageError(`Unexpected argument "${args[0]}".`);
    if (names && (json || strict)) throw new UsageError("--names has no other options.");
    if (names) {
      const lines = await withCatalog(baseConfig, async ({ catalog, config, postgres }) => {
        const { buildGraphQL } = await import("../contract/build-graphql.ts");
        return formatTableNames(catalog, (await buildGraphQL(catalog, config, postgres)).tableNames());
      });
      for (const line of lines) console.log(line);
      return;
    }
    const findings = await withCatalog(baseConfig, (context) => withProgress("checking", () => findProblems(context)));
    if (json) printJson(findings);
    else printFindings(findings);
    if (findings.some(({ kind }) => kind === "danger")) process.exitCode = EXIT_FAILURE;
    else if (strict && findings.length > 0) process.exitCode = EXIT_ADVICE;
  },
});

async function findProblems({ catalog, config, postgres }: CatalogCommandContext): Promise<DoctorFinding[]> {
  const findOmitted = async () => {
    const { buildGraphQL } = await import("../contract/build-graphql.ts");
    return (await buildGraphQL(catalog, config, postgres)).omitted;
  };
  const fileStore = openFileStore(config);
  return [
    ...(await collectFindings({ catalog, config, postgres, findOmitted, comparesMigrations: true, fileStore })),
    ...(await readConfigFindings(process.cwd(), config, postgres.directUrl)),
  ];
}

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
