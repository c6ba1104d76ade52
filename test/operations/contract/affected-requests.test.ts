import { randomUUID } from "node:crypto";
import { beforeAll, describe, expect, test, vi } from "vitest";
import { readConfig } from "../../../config/config.ts";
import { RequestRecorder } from "../../../http/observability/request-recorder.ts";
import { compareWithRequests } from "../../../operations/contract/affected-requests.ts";
import type { Contract, ContractChange } from "../../../operations/contract/contract.ts";
import { type RecordedRequest, readRecordedRequests } from "../../../operations/contract/recorded-requests.ts";
import { withClient } from "../../../postgres/client/with-client.ts";
import { checkContractOf, readContractOf } from "../../../service/contract/database-contract.ts";
import { urlOf, useDatabase } from "../../database.ts";
import { propertyRuns } from "../../property-runs.ts";
import { serve } from "../../serve.ts";
import { SHOP } from "./changed-contracts.ts";
import { isBroken, REQUESTS, type RecordedResponse, ROWS, sendRequest } from "./recorded-clients.ts";

const SETTINGS = {
  PGRST_DB_SCHEMAS: "shop",
  REST_REQUIRE_APIKEY: "false",
  PGRST_DB_CONFIG: "false",
  BASE_SCHEMA: "platform",
};

const CHANGES = [
  "alter table shop.items drop column note",
  "alter table shop.items rename column checked to verified",
  "alter table shop.items rename column note to remark",
  "alter table shop.tags rename to labels",
  "drop table shop.tags cascade",
  "drop view shop.cheap",
  "drop function shop.label",
  "drop function shop.find_items",
  "drop function shop.add_tag",
  "alter table shop.items drop constraint items_maker_fkey",
  "alter table shop.items drop constraint items_sku",
  "alter table shop.items add column maker2 int references shop.makers",
  "alter table shop.makers add column code text; update shop.makers set code = 'x'; alter table shop.makers alter column code set not null",
  "alter table shop.items alter column stock drop default",
  "alter table shop.items alter column stock type text",
  "alter table shop.items alter column note set not null",
  "alter type shop.colour rename value 'green' to 'lime'",
  "revoke select on shop.items from anon",
  "revoke select on shop.makers from anon, authenticated",
  "revoke insert on shop.items from service_role",
  "revoke execute on function shop.find_items from anon",
  "alter table shop.items add column weight int",
];

const config = readConfig({ ...SETTINGS, JWT_SECRET: "x".repeat(32) }).config;
let before: Contract;
let requests: readonly RecordedRequest[];
let responses: readonly RecordedResponse[];
/** The recorded shapes of each request, by their index. */
let shapes: readonly (readonly number[])[];

const database = useDatabase({ template: "platform", sql: `${SHOP}; ${ROWS}` });
beforeAll(async () => {
  before = await readContractOf(database.ownerUrl, database.url, config);
  const copy = await openCopy("");
  const described: string[] = [];
  const count = RequestRecorder.prototype.count;
  vi.spyOn(RequestRecorder.prototype, "count").mockImplementation(function (
    this: RequestRecorder,
    name,
    plan,
    variant,
    describe,
  ) {
    described.push(JSON.stringify(describe()));
    return count.call(this, name, plan, variant, describe);
  });
  const service = await serve(copy.urls, SETTINGS);
  const texts: string[][] = [];
  const received: RecordedResponse[] = [];
  for (const request of REQUESTS) {
    described.length = 0;
    received.push(await sendRequest(service, request));
    texts.push([...described]);
  }
  await service.stop();
  vi.restoreAllMocks();
  requests = (await withClient(copy.urls.ownerUrl, readRecordedRequests))!;
  const keys = requests.map(({ requests: _, ...shape }) => sortedJson(shape));
  shapes = texts.map((each) => each.map((text) => keys.indexOf(sortedJson(JSON.parse(text)))));
  responses = received;
  await copy.drop();
});

/** jsonb has an order of its own. */
function sortedJson(value: unknown): string {
  return JSON.stringify(value, (_, member) =>
    typeof member === "object" && member !== null && !Array.isArray(member)
      ? Object.fromEntries(Object.entries(member).sort())
      : member,
  );
}

async function openCopy(sql: string) {
  const name = `test_${randomUUID().replaceAll("-", "")}`;
  const inRoot = (text: string) => withClient(urlOf("postgres", "postgres"), (client) => client.query(text));
  await inRoot(`create database ${name} template ${database.name}`);
  const urls = { url: urlOf("authenticator", name), ownerUrl: urlOf("postgres", name) };
  await withClient(urls.ownerUrl, (client) => client.query(sql));
  return { urls, drop: () => inRoot(`drop database ${name} with (force)`) };
}

async function replay(urls: { readonly url: string; readonly ownerUrl: string }): Promise<RecordedResponse[]> {
  const service = await serve(urls, SETTINGS);
  try {
    const received: RecordedResponse[] = [];
    for (const request of REQUESTS) received.push(await sendRequest(service, request));
    return received;
  } finally {
    await service.stop();
  }
}

function nameOf(request: Pick<RecordedRequest, "interface" | "role" | "request">): string {
  return `${request.interface} ${request.role} ${request.request}`;
}

test("each request that succeeds is recorded", () => {
  expect(REQUESTS.filter((_, index) => !responses[index]!.succeeded)).toEqual([]);
  expect(REQUESTS.filter((_, index) => shapes[index]!.length === 0 || shapes[index]!.includes(-1))).toEqual([]);
});

/** Changes are made together unless all runs are made: those that are so far from each other in the list exclude and hide none. */
const GROUPS = propertyRuns(CHANGES.length);
const CHANGES_MADE = Array.from({ length: GROUPS }, (_, group) =>
  CHANGES.filter((_, index) => index % GROUPS === group).join("; "),
);

describe("the recorded requests that changes break", () => {
  test.each(CHANGES_MADE)("%s", async (sql) => {
    const copy = await openCopy(sql);
    try {
      const after = await checkContractOf(copy.urls.ownerUrl, copy.urls.url, config, requests);
      const { refusals } = after;
      const changes: ContractChange[] = compareWithRequests(before, after, requests);
      const listed = new Set(changes.flatMap((change) => change.requests?.map(nameOf) ?? []));
      const replayed = await replay(copy.urls);
      const differences = REQUESTS.flatMap((request, index) => {
        const own = shapes[index]!;
        const refusal = own.map((shape) => refusals[shape]).find((each) => each !== null) ?? null;
        const isListed = own.some((shape) => listed.has(nameOf(requests[shape]!)));
        const { succeeded } = replayed[index]!;
        const broken = isBroken(responses[index]!, replayed[index]!);
        const callsBody = request.path === "/graphql" && JSON.stringify(request.body).includes("addTag");
        // The check does not cover the effects of GraphQL functions.
        const isWrong = refusal !== null ? succeeded || !isListed : broken && !isListed && !callsBody;
        return isWrong ? [{ request, refusal, isListed, value: replayed[index]!.value }] : [];
      });
      expect(differences).toEqual([]);
    } finally {
      await copy.drop();
    }
  });
});
