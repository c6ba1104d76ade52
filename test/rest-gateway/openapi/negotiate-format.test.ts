import { describe, expect, test } from "vitest";
import { negotiateFormat } from "../../../rest-gateway/table/respond/describe.ts";

const formOf = (accept: string | undefined) => negotiateFormat(accept).format;

describe("the document for a client", () => {
  test.each([
    ["a browser", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"],
    ["who names OpenAPI's own type", "application/vnd.oai.openapi+json"],
    ["who asks for the version", "application/vnd.oai.openapi+json;version=3.1"],
    ["who asks for the patch version, quoted", 'application/vnd.oai.openapi+json; Version="3.1.0"'],
    ["who asks PostgREST's type for the version", "application/openapi+json;version=3.1"],
    ["who prefers it", "application/openapi+json;q=0.5, application/vnd.oai.openapi+json"],
  ])("%s gets OpenAPI 3.1", (_, accept) => {
    expect(formOf(accept)).toBe("openapi-3.1");
  });

  test.each([
    ["a client that says nothing", undefined],
    ["curl, node's fetch, vue-postgrest", "*/*"],
    ["who takes any application type", "application/*"],
    ["supabase-js", "application/openapi+json"],
    ["react-admin", "application/json"],
    ["swagger-ui", "application/json,*/*"],
    ["who asks for the version", "application/openapi+json;version=2.0"],
    ["who asks OpenAPI's type for the version", "application/vnd.oai.openapi+json;version=2.0"],
    ["who takes anything, but this rather", "*/*;q=0.1, application/json;q=0.2"],
  ])("%s gets Swagger 2.0", (_, accept) => {
    expect(formOf(accept)).toBe("swagger-2.0");
  });

  test("has a requested media type", () => {
    const typeOf = (accept: string) => negotiateFormat(accept).contentType;
    expect(typeOf("*/*")).toBe("application/openapi+json; charset=utf-8");
    expect(typeOf("text/html, */*;q=0.8")).toBe("application/vnd.oai.openapi+json;version=3.1; charset=utf-8");
    expect(typeOf("application/openapi+json;version=3.1")).toBe("application/openapi+json;version=3.1; charset=utf-8");
    expect(typeOf("application/json")).toBe("application/openapi+json; charset=utf-8");
    expect(typeOf("application/vnd.oai.openapi+json;version=2.0")).toBe(
      "application/vnd.oai.openapi+json;version=2.0; charset=utf-8",
    );
  });

  test.each([
    ["text/csv", "text/csv"],
    ["application/vnd.oai.openapi+json;version=3.0", "application/vnd.oai.openapi+json;version=3.0"],
    ["text/csv, application/json;q=0", "text/csv"],
  ])("%s is not acceptable", (accept, request) => {
    const message = `None of these media types are available: ${request}`;
    expect(() => formOf(accept)).toThrow(expect.objectContaining({ status: 406, code: "PGRST107", message }));
  });
});
