import { Validator } from "@seriousme/openapi-schema-validator";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openApiAnswer } from "../../../rest-gateway/openapi/answer.ts";
import { DocumentCache } from "../../../rest-gateway/openapi/document-cache.ts";
import type { Subject } from "../../../rest-gateway/openapi/subject.ts";
import { type Fixture, makeFixture } from "./fixture.ts";

let fixture: Fixture;
beforeAll(async () => {
  fixture = await makeFixture();
});
afterAll(() => fixture.drop());

const ask = (subject: Subject, accept?: string, documents = new DocumentCache()) =>
  openApiAnswer({ ...subject, accept }, documents);

/** Every `$ref` of a document that leads nowhere. */
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

describe("GET /rest/v1/", () => {
  const roles = ["user", "anon", "stranger"];
  const modes = ["follow-privileges", "ignore-privileges"] as const;
  const forms = [
    ["3.1", "application/vnd.oai.openapi+json;version=3.1; charset=utf-8", "application/vnd.oai.openapi+json"],
    ["2.0", "application/openapi+json; charset=utf-8", "application/openapi+json"],
  ] as const;
  const cases = forms.flatMap((form) => modes.flatMap((mode) => roles.map((role) => [...form, mode, role] as const)));

  test.each(cases)("answers a document of OpenAPI %s that is valid: %s for %s, %s, %s", async (...given) => {
    const [version, type, accept, mode, role] = given;
    const { contentType, text } = await ask(fixture.subject(role, { mode, securityActive: true }), accept);
    expect(contentType).toBe(type);
    const document = JSON.parse(text.toString());
    expect(danglingReferences(document)).toEqual([]);
    const validator = new Validator();
    expect(await validator.validate(document)).toEqual({ valid: true });
    expect(validator.version).toBe(version);
  });

  test("makes each document once for a catalogue, a schema, a form and a role", async () => {
    const documents = new DocumentCache();
    const user = fixture.subject("user");
    const { text } = await ask(user, "*/*", documents);
    expect((await ask(user, undefined, documents)).text).toBe(text);
    expect((await ask(fixture.subject("anon"), "*/*", documents)).text).not.toBe(text);
    expect((await ask(fixture.subject("user", { schema: "other" }), "*/*", documents)).text).not.toBe(text);
    expect((await ask(user, "application/json", documents)).text).toBe(text);
    expect((await ask(user, "application/vnd.oai.openapi+json", documents)).text).not.toBe(text);
    expect(documents.size).toBe(4);
  });

  test("makes one document for all roles where privileges are not followed", async () => {
    const documents = new DocumentCache();
    const { text } = await ask(fixture.subject("user", { mode: "ignore-privileges" }), "*/*", documents);
    expect((await ask(fixture.subject("anon", { mode: "ignore-privileges" }), "*/*", documents)).text).toBe(text);
  });

  test("tells PostgREST's clients where they are, when that is known", async () => {
    const swaggerAt = async (serverUrl: string) => {
      const { text } = await ask(fixture.subject("stranger", { serverUrl }), "application/json");
      const { host, basePath, schemes } = JSON.parse(text.toString());
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

  test("refuses a form that there is not", async () => {
    await expect(ask(fixture.subject("user"), "text/csv")).rejects.toMatchObject({ status: 406, code: "PGRST107" });
  });
});
