import type { FunctionComponent } from "preact";
import type { IconName } from "../components/icon.ts";
import { texts } from "../texts.ts";

type StudioPage = {
  /** The first segment of the page's path below `/studio`. */
  readonly name: string;
  readonly title: string;
  readonly icon: IconName;
  readonly load: () => Promise<FunctionComponent>;
};

/** The pages in the order of the navigation; the first is shown at `/studio`. */
export const pages: readonly StudioPage[] = [
  {
    name: "tables",
    title: texts.tables.title,
    icon: "table",
    load: async () => (await import("../tables/tables-page.ts")).TablesPage,
  },
  {
    name: "sql",
    title: texts.sql.title,
    icon: "terminal",
    load: async () => (await import("../sql/sql-page.ts")).SqlPage,
  },
  {
    name: "schema",
    title: texts.schema.title,
    icon: "diagram",
    load: async () => (await import("../schema/schema-page.ts")).SchemaPage,
  },
  {
    name: "access",
    title: texts.access.title,
    icon: "shield",
    load: async () => (await import("../access/access-page.ts")).AccessPage,
  },
  {
    name: "files",
    title: texts.files.title,
    icon: "folder",
    load: async () => (await import("../files/files-page.ts")).FilesPage,
  },
  {
    name: "people",
    title: texts.people.title,
    icon: "people",
    load: async () => (await import("../people/people-page.ts")).PeoplePage,
  },
  {
    name: "running",
    title: texts.running.title,
    icon: "activity",
    load: async () => (await import("../running/running-page.ts")).RunningPage,
  },
  {
    name: "changes",
    title: texts.changes.title,
    icon: "branch",
    load: async () => (await import("../changes/changes-page.ts")).ChangesPage,
  },
];
