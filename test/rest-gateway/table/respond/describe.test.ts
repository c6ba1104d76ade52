import { Validator } from "@seriousme/openapi-schema-validator";
import { describe, expect, test } from "vitest";
import { DocumentCache } from "../../../../rest-gateway/openapi/document/printed-document.ts";
import type { TableDocumentOptions } from "../../../../rest-gateway/openapi/document/visible-schema.ts";
import { describeTables } from "../../../../rest-gateway/table/respond/describe.ts";
import { useFixture } from "../../../fixture.ts";
import { makeFixture } from "../../openapi/fixture.ts";
import { textOf } from "../../openapi/text-of.ts";

const fixture = useFixture(makeFixture);

const ask = (subject: TableDocumentOptions, accept?: string, documents = new DocumentCache()) =>
  describeTables({ ...subject, accept }, documents);

/** Returns every `$ref` of a document that leads nowhere. */
function danglingReferences(document: object): string[] {
  const lead = (pointer: string) =>
    pointer
      .slice(2)
      .split("/")
      .map((step) => decodeURIComponent(step).replaceAll("~1", "/").replaceAll("~0", "~"))
      .reduce<unknown>((value, step) => (value as Record<string, unknown> | undefined)?.[step], document);
  const references = JSON.stringify(document).matchAll(/"\$ref":"((?:[^"\\]|\\.)*)"/g);
  return [...references]
    .map(([, pointer]) => JSON.parse(`"${pointer}"`))
    .filter((pointer) => lead(pointer) === undefined);
}

type Schema = { readonly type?: string | readonly string[]; readonly items?: unknown };

/** Returns the errors that linters of OpenAPI report beside the validator: arrays without items, and tags that are not declared. */
function documentFaults(document: { tags?: { name: string }[]; paths: object; security?: unknown }): string[] {
  const declared = new Set(document.tags?.map(({ name }) => name));
  const faults = document.security ? [] : ["no security"];
  JSON.stringify(document, (key, value) => {
    const { type, items } = (value ?? {}) as Schema;
    if ([type].flat().includes("array") && items === undefined) faults.push(`${key} without items`);
    return value;
  });
  for (const path of Object.values(document.paths)) {
    for (const { tags = [] } of Object.values(path as Record<string, { tags?: string[] }>)) {
      faults.push(...tags.filter((tag) => !declared.has(tag)).map((tag) => `tag ${tag}`));
    }
  }
  return faults;
}

describe("GET /rest/v1/", () => {
  const roles = ["user", "anon", "stranger"];
  const modes = ["follow-privileges", "ignore-privileges"] as const;
  const forms = [
    ["3.1", "application/vnd.oai.openapi+json;version=3.1; charset=utf-8", "application/vnd.oai.openapi+json"],
    ["2.0", "application/openapi+json; charset=utf-8", "application/openapi+json"],
  ] as const;
  const cases = forms.flatMap((form) => modes.flatMap((mode) => roles.map((role) => [...form, mode, role] as const)));

  test.each(cases)("returns a valid OpenAPI %s document: %s for %s, %s, %s", async (...given) => {
    const [version, type, accept, mode, role] = given;
    const { contentType, document: written } = await ask(fixture.subject(role, { mode, securityActive: true }), accept);
    expect(contentType).toBe(type);
    const document = JSON.parse(await textOf(written));
    expect(danglingReferences(document)).toEqual([]);
    if (version === "3.1") expect(documentFaults(document)).toEqual([]);
    const validator = new Validator();
    expect(await validator.validate(document)).toEqual({ valid: true });
    expect(validator.version).toBe(version);
  });

  test("makes each document once for a catalogue, a schema, a format and a role", async () => {
    const documents = new DocumentCache();
    const user = fixture.subject("user");
    const { document } = await ask(user, "*/*", documents);
    expect((await ask(user, undefined, documents)).document).toBe(document);
    expect((await ask(fixture.subject("anon"), "*/*", documents)).document).not.toBe(document);
    expect((await ask(fixture.subject("user", { schema: "other" }), "*/*", documents)).document).not.toBe(document);
    expect((await ask(user, "application/json", documents)).document).toBe(document);
    expect((await ask(user, "application/vnd.oai.openapi+json", documents)).document).not.toBe(document);
    expect(documents.size).toBe(4);
  });

  test("makes a document of the requested tables only, in which all references resolve", async () => {
    const [table] = fixture.catalog.schemas.get("api")!.tables.keys();
    for (const accept of ["application/json", "application/vnd.oai.openapi+json"]) {
      const { document } = await ask(fixture.subject("user", { tables: [table!], mode: "ignore-privileges" }), accept);
      const described = JSON.parse(await textOf(document));
      expect(Object.keys(described.paths)).toEqual(["/", `/${table}`]);
      expect(danglingReferences(described)).toEqual([]);
      expect(await new Validator().validate(described)).toEqual({ valid: true });
    }
  });

  test("makes one document for all roles if privileges are ignored", async () => {
    const documents = new DocumentCache();
    const { document } = await ask(fixture.subject("user", { mode: "ignore-privileges" }), "*/*", documents);
    expect((await ask(fixture.subject("anon", { mode: "ignore-privileges" }), "*/*", documents)).document).toBe(
      document,
    );
  });

  test("has the server URL for PostgREST's clients, if it is known", async () => {
    const swaggerAt = async (serverUrl: string) => {
      const { document } = await ask(fixture.subject("stranger", { serverUrl }), "application/json");
      const { host, basePath, schemes } = JSON.parse(await textOf(document));
      return { host, basePath, schemes };
    };
    expect(await swaggerAt("/rest/v1")).toEqual({ basePath: "/rest/v1" });
    expect(await swaggerAt("https://api.example.org/rest/v1")).toEqual({
      host: "api.example.org:443",
      basePath: "/rest/v1",
      schemes: ["https"],
    });
    expect(await swaggerAt("http://localhost:3000")).toEqual({
      host: "localhost:3000",
      basePath: "/",
      schemes: ["http"],
    });
  });

  test("refuses an unknown format", async () => {
    await expect(ask(fixture.subject("user"), "text/csv")).rejects.toMatchObject({ status: 406, code: "PGRST107" });
  });
});
