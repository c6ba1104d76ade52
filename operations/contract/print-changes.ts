import { CHANGE_LEVELS, CONTRACT_SURFACES, type ContractChange } from "./contract.ts";

const TITLES: Readonly<Record<ContractChange["surface"], string>> = {
  graphql: "GraphQL",
  openapi: "OpenAPI of /api",
  tables: "Table interface",
  types: "TypeScript types",
  access: "Who may do what",
};

/** For a review. */
export function printChanges(changes: readonly ContractChange[]): string {
  if (changes.length === 0) return "No interface changes.\n";
  const levels = CHANGE_LEVELS.toReversed();
  const counts = levels.map((level) => `${changes.filter((change) => change.level === level).length} ${level}`);
  const surfaces = CONTRACT_SURFACES.filter((surface) => changes.some((change) => change.surface === surface));
  const sections = surfaces.map((surface) => {
    const lines = changes
      .filter((change) => change.surface === surface)
      .map(({ level, object, message }) => `- **${level}** \`${object}\`: ${message}`);
    return `### ${TITLES[surface]}\n\n${lines.join("\n")}\n`;
  });
  return `## Interface changes\n\n${counts.join(", ")}\n\n${sections.join("\n")}`;
}
