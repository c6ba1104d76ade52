import jwt from "jsonwebtoken";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { printDocument } from "../../../rest-gateway/openapi/document/printed-document.ts";
import { makeSwaggerDocument } from "../../../rest-gateway/openapi/swagger/document.ts";
import { isJsonObject } from "../../../runtime/json/json-values.ts";
import { urlOf } from "../../database.ts";
import { useFixture } from "../../fixture.ts";
import { isPostgrestInstalled, type Postgrest, startPostgrest } from "../../postgrest.ts";
import { SECRET } from "../../secret.ts";
import { type Difference, differences } from "./differences.ts";
import { makeFixture } from "./fixture.ts";
import { textOf } from "./text-of.ts";

const SERVER_URL = "https://api.example.org/rest/v1";

type Explanation = readonly [where: RegExp, why: string];

/** PostgREST 12.0.2 is older than the 14 that we follow. */
const NEWER: readonly Explanation[] = [
  [/^\/info\/version$/, "tools read the version of PostgREST; what we speak is 14"],
  [/^\/externalDocs\/url$/, "the documentation of 14"],
  [/^\/parameters\/preferParams\/enum$/, "13 dropped params=single-object"],
];
const NEWER_TABLES: readonly Explanation[] = [
  [/^\/parameters\/rowFilter\..*\/format$/, "12.2.3 dropped it: what is filtered by has an operator in front"],
  [/^\/definitions\/summaries\/properties\/book_id\/description$/, "12.0.3 tells a one-to-one key as well"],
  [/^\/paths\/\/rpc\/(echo|either|lend|csv_step)\/get$/, "14 lists GET for functions that change nothing only"],
];
const REFERENCES: Explanation = [
  /odd "table"(\/.*\$ref|\/(get|post|patch|delete)\/parameters)|^\/parameters\/rowFilter\.odd "table"\.select$/,
  "a $ref is a URI, so that odd names are escaped; a filter called select would be the parameter select twice",
];
const TAGS: readonly Explanation[] = [
  [/^\/info\/(title|description)$/, "a smart tag is for GraphQL"],
  [/books(\/properties\/|\.)title\/description$/, "a smart tag is for GraphQL"],
];
const HIDDEN: readonly Explanation[] = [
  [/^\/definitions\/books\/properties\/code\/default$/, "it names a function of a schema that is not the role's"],
  [/^\/definitions\/books\/properties\/first_writer_row\/format$/, "it names a table that is not the role's"],
];
const HIDDEN_FROM_ANON: readonly Explanation[] = [
  [/writers(\/properties\/|\.)(email|password)$/, "the role may not use the column"],
  [/^\/paths\/\/writers\/(get|patch|delete)\/parameters$/, "the same columns as filters"],
  [/editions/, "the role may delete rows, and use no column"],
  [/^\/definitions\/notes\/properties\/secret_id\/description$/, "the key leads to a table that is not the role's"],
  [/^\/paths\/\/rpc\/peek\//, "the argument's type names a table that is not the role's"],
];
const QUALIFIED: Explanation = [
  /^\/paths\/\/rpc\/\w+\/(get|post)\/parameters\/.*\/format$/,
  "in this mode PostgREST qualifies the types of arguments, and in the other it does not",
];
const NOTHING_THERE: readonly Explanation[] = [
  [/^\/info\/(title|description)$/, "without a comment on the schema, our own words"],
  [/^\/definitions$/, "empty and not absent"],
];

const peers = new Map<string, Postgrest>();
const fixture = useFixture(makeFixture);
beforeAll(async () => {
  if (!isPostgrestInstalled) return;
  for (const mode of ["follow-privileges", "ignore-privileges"]) {
    const settings = {
      PGRST_DB_CONFIG: "false",
      PGRST_DB_SCHEMAS: "api,other",
      PGRST_DB_EXTRA_SEARCH_PATH: "extra",
      PGRST_DB_ANON_ROLE: fixture.role("anon"),
      PGRST_JWT_SECRET: SECRET,
      PGRST_OPENAPI_MODE: mode,
      PGRST_OPENAPI_SERVER_PROXY_URI: SERVER_URL,
    };
    peers.set(mode, await startPostgrest(urlOf(fixture.role("login"), fixture.name), settings));
  }
});
afterAll(async () => {
  for (const peer of peers.values()) await peer.stop();
});

const INTEGER_FORMATS: Readonly<Record<string, string>> = { smallint: "int32", integer: "int32", bigint: "int64" };

/** 14.8 calls integers as Swagger does, where 12 has the names of SQL. */
function withNewerFormat(_name: string, value: unknown): unknown {
  if (!isJsonObject(value) || value.type !== "integer" || typeof value.format !== "string") return value;
  return { ...value, format: INTEGER_FORMATS[value.format] ?? value.format };
}

type Case = {
  readonly role: string;
  readonly schema: string;
  readonly mode: "follow-privileges" | "ignore-privileges";
};

async function compare({ role, schema, mode }: Case): Promise<Difference[]> {
  const token = jwt.sign({ role: fixture.role(role) }, SECRET);
  const headers = { Authorization: `Bearer ${token}`, "Accept-Profile": schema };
  const theirs = JSON.parse(await (await fetch(peers.get(mode)!.url, { headers })).text(), withNewerFormat);
  const subject = fixture.subject(role, { schema, mode, serverUrl: SERVER_URL });
  const ours = JSON.parse(await textOf(printDocument(await makeSwaggerDocument(subject))));
  return differences(theirs, ours);
}

describe.skipIf(!isPostgrestInstalled)("the Swagger document, compared with PostgREST's", () => {
  test.each<[Case, Explanation[]]>([
    [
      { role: "user", schema: "api", mode: "follow-privileges" },
      [...NEWER, ...NEWER_TABLES, REFERENCES, ...TAGS, ...HIDDEN],
    ],
    [
      { role: "anon", schema: "api", mode: "follow-privileges" },
      [...NEWER, NEWER_TABLES[0]!, ...TAGS, ...HIDDEN, ...HIDDEN_FROM_ANON],
    ],
    [
      { role: "stranger", schema: "api", mode: "ignore-privileges" },
      [...NEWER, ...NEWER_TABLES, REFERENCES, ...TAGS, QUALIFIED],
    ],
    [{ role: "user", schema: "other", mode: "follow-privileges" }, [...NEWER, NEWER_TABLES[0]!, NOTHING_THERE[0]!]],
    [{ role: "anon", schema: "other", mode: "follow-privileges" }, [...NEWER, ...NOTHING_THERE]],
    [{ role: "stranger", schema: "api", mode: "follow-privileges" }, [...NEWER, ...NOTHING_THERE]],
  ])("is the same except for the explained differences: %o", async (request, explanations) => {
    const found = await compare(request);
    const unexplained = found.filter(({ at }) => !explanations.some(([where]) => where.test(at)));
    expect(unexplained).toEqual([]);
    const unused = explanations.filter(([where]) => !found.some(({ at }) => where.test(at)));
    expect(unused).toEqual([]);
  });
});
