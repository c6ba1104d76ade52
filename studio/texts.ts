import { accessTexts } from "./texts/access.ts";
import { changesTexts } from "./texts/changes.ts";
import { filesTexts } from "./texts/files.ts";
import { frameTexts } from "./texts/frame.ts";
import { jobTexts } from "./texts/jobs.ts";
import { peopleTexts } from "./texts/people.ts";
import { runningTexts } from "./texts/running.ts";
import { schemaTexts } from "./texts/schema.ts";
import { sqlTexts } from "./texts/sql.ts";
import { tablesTexts } from "./texts/tables.ts";

/** The English texts of the pages, by part. Texts with values are functions. */
export const texts = {
  ...frameTexts,
  ...tablesTexts,
  ...sqlTexts,
  ...schemaTexts,
  ...accessTexts,
  ...filesTexts,
  ...peopleTexts,
  ...runningTexts,
  ...jobTexts,
  ...changesTexts,
};
