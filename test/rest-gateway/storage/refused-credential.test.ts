import { createClient } from "@supabase/supabase-js";
import jwt from "jsonwebtoken";
import { expect, test } from "vitest";
import { useFolder } from "../../fixture.ts";
import { SECRET } from "../../secret.ts";
import { useService } from "../../serve.ts";

// Supabase's storage service answers with status 400 too, and with 403 in the body.

const folder = useFolder("files-");
const service = useService({ settings: { STORAGE_DIR: folder } });

const ROUTES = [
  ["GET", "/bucket"],
  ["POST", "/object/list/notes"],
  ["GET", "/object/authenticated/notes/x"],
  ["POST", "/object/notes/x"],
  ["POST", "/upload/resumable"],
  ["GET", "/render/image/authenticated/notes/x"],
] as const;

const expired = jwt.sign({ role: "anon", exp: 1000 }, SECRET);
const forged = jwt.sign({ role: "anon" }, "another-secret-that-is-as-long-as-it-must-be");

test.each([
  ["is no token", "not-a-token", "Invalid Compact JWS"],
  ["is empty", "", "Invalid Compact JWS"],
  ["has expired", expired, '"exp" claim timestamp check failed'],
  ["somebody else has signed", forged, "signature verification failed"],
])("a token that %s is refused as by Supabase", async (_, token, message) => {
  for (const [method, path] of ROUTES) {
    const response = await fetch(`${service.url}/storage/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${token}` },
    });
    expect([path, response.status, await response.json()]).toEqual([
      path,
      400,
      { statusCode: "403", error: "Unauthorized", code: "AccessDenied", message, hint: expect.any(String) },
    ]);
    expect(response.headers.get("www-authenticate")).toContain("invalid_token");
  }
});

test("without a token or a key, the body names the header", async () => {
  for (const [method, path] of ROUTES) {
    const response = await fetch(`${service.url}/storage/v1${path}`, { method });
    expect([path, response.status, await response.json()]).toEqual([
      path,
      400,
      expect.objectContaining({
        statusCode: "400",
        error: "Error",
        message: "headers must have required property 'authorization'",
      }),
    ]);
  }
});

test("storage-js reports the reason", async () => {
  const { error } = await createClient(service.url, expired).storage.listBuckets();
  expect(error).toMatchObject({ status: 400, statusCode: "403", message: '"exp" claim timestamp check failed' });
});

test("what needs no token ignores one that is refused", async () => {
  const response = await fetch(`${service.url}/storage/v1/status`, { headers: { authorization: "Bearer x" } });
  expect(response.status).toBe(200);
});
