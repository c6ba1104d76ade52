import jwt from "jsonwebtoken";
import { expect, test } from "vitest";
import { SECRET } from "../../secret.ts";
import { useService } from "../../serve.ts";

const service = useService({ template: "platform", settings: { STUDIO: "administrators", BASE_SCHEMA: "platform" } });

async function send(method: string, path: string, body?: object, role = "admin") {
  const response = await fetch(`${service.url}/admin/v1${path}`, {
    method,
    headers: { Authorization: `Bearer ${jwt.sign({ role }, SECRET)}`, "Content-Type": "application/json" },
    ...(body && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, body: text === "" ? null : JSON.parse(text) };
}

test("queries are shared, replaced by name, and deleted", async () => {
  expect((await send("GET", "/queries")).body).toEqual({ queries: [] });
  const saved = await send("POST", "/queries", { name: " late / orders ", text: "select 1" });
  expect(saved).toMatchObject({ status: 200, body: { name: "late / orders", text: "select 1", saved_by: null } });
  await send("POST", "/queries", { name: "late / orders", text: "select 2" });
  const { body } = await send("GET", "/queries");
  expect(body.queries.map(({ name, text }: { name: string; text: string }) => [name, text])).toEqual([
    ["late / orders", "select 2"],
  ]);
  const path = `/queries/${encodeURIComponent("late / orders")}`;
  expect((await send("DELETE", path)).status).toBe(204);
  expect((await send("DELETE", path)).status).toBe(404);
  expect((await send("GET", "/queries")).body).toEqual({ queries: [] });
});

test.each([
  ["no name", { name: "  ", text: "select 1" }],
  ["a name that is too long", { name: "n".repeat(201), text: "select 1" }],
  ["no text", { name: "n", text: " " }],
  ["a text that is too long", { name: "n", text: "x".repeat(50_001) }],
  ["a text that is none", { name: "n", text: 1 }],
])("%s is refused", async (_, query) => {
  expect((await send("POST", "/queries", query)).status).toBe(400);
});

test("other callers neither read nor write them", async () => {
  for (const role of ["authenticated", "service_role"]) {
    expect((await send("GET", "/queries", undefined, role)).status).toBe(403);
    expect((await send("POST", "/queries", { name: "n", text: "select 1" }, role)).status).toBe(403);
    expect((await send("DELETE", "/queries/n", undefined, role)).status).toBe(403);
  }
});
