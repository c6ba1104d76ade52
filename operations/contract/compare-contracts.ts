import { accessChanges } from "./access-changes.ts";
import {
  CHANGE_LEVELS,
  CONTRACT_SURFACES,
  type Contract,
  type ContractChange,
  type SurfaceChange,
} from "./contract.ts";
import { graphqlChanges } from "./graphql-changes.ts";
import { openapiChanges } from "./openapi-changes.ts";
import { tableChanges } from "./table-changes.ts";
import { typeChanges } from "./type-changes.ts";

const COMPARISONS: Readonly<
  Record<(typeof CONTRACT_SURFACES)[number], (before: Contract, after: Contract) => SurfaceChange[]>
> = {
  graphql: (before, after) => graphqlChanges(before.graphql, after.graphql),
  openapi: (before, after) => openapiChanges(before.openapi, after.openapi),
  tables: (before, after) => tableChanges(before.tables, after.tables),
  types: (before, after) => typeChanges(before.types, after.types),
  access: (before, after) => accessChanges(before.access, after.access),
};

/** Returns the changes for clients that a change of the database makes: by surface, the severest first. */
export function compareContracts(before: Contract, after: Contract): ContractChange[] {
  const rank = ({ level }: SurfaceChange) => -CHANGE_LEVELS.indexOf(level);
  return CONTRACT_SURFACES.flatMap((surface) =>
    COMPARISONS[surface](before, after)
      .toSorted((one, other) => rank(one) - rank(other))
      .map((change) => ({ surface, ...change })),
  );
}

const TITLES: Readonly<Record<ContractChange["surface"], string>> = {
  graphql: "GraphQL",
  openapi: "OpenAPI of /api",
  tables: "Table interface",
  types: "TypeScript types",
  access: "Who may do what",
};

/** Prints the changes for a review. */
export function printChanges(changes: readonly ContractChange[]): string {
  if (changes.length === 0) return "No interface changes.\n";
  const levels = CHANGE_LEVELS.toReversed();
  const counts = levels.map((level) => `${changes.filter((change) => change.level === level).length} ${level}`);
  const surfaces = CONTRACT_SURFACES.filter((surface) => changes.some((change) => change.surface === surface));
  const sections = surfaces.map((surface) => {
    const lines = changes
      .filter((change) => change.surface === surface)
      .flatMap(({ level, object, message, requests }) => [
        `- **${level}** \`${object}\`: ${message}`,
        ...printRequests(requests),
      ]);
    return `### ${TITLES[surface]}\n\n${lines.join("\n")}\n`;
  });
  return `## Interface changes\n\n${counts.join(", ")}\n\n${sections.join("\n")}`;
}

const MAX_PRINTED_REQUESTS = 10;

function printRequests(requests: ContractChange["requests"]): string[] {
  if (requests === undefined) return [];
  if (requests.length === 0) return ["  - No recorded request uses it."];
  const lines = requests.slice(0, MAX_PRINTED_REQUESTS).map(({ request, role, requests: count, refusal }) => {
    const outcome = refusal === null ? "it may respond otherwise" : `refused: ${refusal}`;
    return `  - \`${request}\` as ${role}, ${count} in the last hour: ${outcome}`;
  });
  const others = requests.length - lines.length;
  return others > 0 ? [...lines, `  - and ${others} more`] : lines;
}
