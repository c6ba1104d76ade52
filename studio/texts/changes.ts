import { formatBytes, formatCount, formatDuration } from "../components/format.ts";

const countOf = (count: number, one: string, many = `${one}s`) => `${formatCount(count)} ${count === 1 ? one : many}`;

export const changesTexts = {
  changes: {
    title: "Changes",
    tabs: { pending: "Pending", rehearsal: "Rehearsal", interfaces: "Interfaces", branches: "Branches" },
    reload: "Reload",
    stop: "Stop",
    byCommand: "This command does it:",
    command: "Command",
    columns: { migration: "Migration", history: "History", appliedAt: "Applied" },
    pending: "Pending migrations",
    nothingPending: "No migrations are pending.",
    committedBy: (command: string) => `Committed migrations are applied by ${command}.`,
    currentBy: (command: string) => `Files of current/ stay pending until you commit them: ${command}.`,
    inCurrent: "current/",
    committed: "committed",
    appliedHere: "applied here",
    notApplied: "not applied",
    sqlOf: (name: string) => `SQL of ${name}`,
    applied: "Applied migrations",
    nothingApplied: "No migration is applied to this database.",
    bases: {
      database: "On a copy of this database.",
      "committed migrations":
        "On an empty database with the committed migrations, because this one has applied files of current/ already.",
    },
    rehearsal: {
      intro: "Applies the pending migrations to a copy, and says whom each statement would hold up.",
      withRows: "Copy all rows, too",
      noRows:
        "Files of current/ are applied to this database, so they are rehearsed without rows, as if each table had 10,000 of them.",
      run: "Rehearse",
      progress: "The migrations are applied to a copy. Leaving this page stops it.",
      summary: (count: number, verdicts: readonly { readonly verdict: string; readonly count: number }[]) =>
        `${countOf(count, "statement")}: ${verdicts.map((each) => `${each.count} ${each.verdict}`).join(", ")}.`,
      place: (file: string, line: number) => `${file}:${line}`,
      sqlAt: (file: string, line: number) => `SQL at ${file}:${line}`,
      skipped: "It changes what is not in the copy: roles, or what all databases of the server share.",
      noLocks: "no locks that others wait for",
      lock: (mode: string, relation: string, blocks: string, isEarlier: boolean) =>
        `${mode} lock on ${relation}${isEarlier ? " of an earlier statement" : ""}: holds ${blocks}`,
      rewrites: (relation: string, rows: number) => `rewrites ${relation}, ${countOf(Math.round(rows), "row")}`,
      reads: (relation: string, rows: number) => `reads ${relation}, ${countOf(Math.round(rows), "row")}`,
      inserts: (rows: number) => `inserts ${countOf(rows, "row")}`,
      changes: (rows: number) => `changes ${countOf(rows, "row")}`,
      costs: (milliseconds: number, walBytes: number) =>
        `${formatDuration(milliseconds)}, ${formatBytes(walBytes)} of WAL`,
      held: (requests: number) =>
        `would hold about ${Number(requests.toFixed(requests < 10 ? 2 : 0))} requests at the rates of the last hour`,
      safeForm: "Safe form",
      canUndo: "The migration can be undone by:",
      lostByUndo: (objects: readonly string[]) => `What was written to these is lost: ${objects.join(", ")}.`,
      cannotUndo: "The migration cannot be undone",
      nothingToUndo: "The migration changes nothing that could be undone.",
    },
    interfaces: {
      intro: "Compares the interfaces of now with those after the pending migrations.",
      run: "Compare",
      progress: "The migrations are applied to a copy, whose interfaces are read. Leaving this page stops it.",
      none: "No interface changes.",
      unused: "No recorded request uses it.",
      used: (requests: number) => countOf(requests, "recorded request"),
      affected: (role: string, count: number, refusal: string | null) =>
        `as ${role}, ${count} in the last hour: ${refusal === null ? "it may respond otherwise" : `refused: ${refusal}`}`,
      noneOfLevel: "No change is of this level.",
      summary: (counts: readonly { readonly level: string; readonly count: number }[]) =>
        `${counts.map(({ level, count }) => `${count} ${level}`).join(", ")}.`,
      copyMarkdown: "Copy as Markdown",
      least: "Show",
      levels: { compatible: "All changes", dangerous: "Dangerous and breaking", breaking: "Breaking only" },
      surfaces: {
        graphql: "GraphQL",
        openapi: "OpenAPI of /api",
        tables: "Table interface",
        types: "TypeScript types",
        access: "Who may do what",
      },
    },
    branches: {
      intro: "A branch is a copy of the database on the same server.",
      create: "Create a branch",
      createTitle: "Create a branch",
      createHint:
        "Its queue is empty, its schedules and webhooks are disabled. Roles, keys and the contents of files are shared.",
      name: "Name",
      nameHint: "At most 30 of the characters a-z, 0-9, _ and -, of which the first is a letter.",
      withRows: "With all rows",
      created: (name: string, copy: string) => `Created the branch ${name} (${copy}).`,
      none: "There are no branches.",
      served: "served now",
      columns: { name: "Branch", size: "Size", sessions: "Sessions", command: "Serve it by", actions: "Actions" },
      commandOf: (name: string) => `Command that serves ${name}`,
      drop: "Drop",
      dropOf: (name: string) => `Drop ${name}`,
      dropTitle: (name: string) => `Drop the branch ${name}`,
      dropHint: "Its rows are lost. The database is not changed.",
    },
  },
};
