import { afterAll, beforeAll, expect, test } from "vitest";
import type { Service } from "../../../service.ts";
import { cloneDatabase, type TestDatabase } from "../../database.ts";
import { serve } from "../../serve.ts";
import { makeClient, newAddress, PASSWORD } from "./auth-client.ts";

let database: TestDatabase;
let service: Service;

beforeAll(async () => {
  database = await cloneDatabase("platform");
  service = await serve(database, {
    BASE_SCHEMA: "platform",
    AUTH_AUTOCONFIRM: "true",
    AUTH_ANONYMOUS_SIGN_INS: "true",
  });
});
afterAll(async () => {
  await service?.stop();
  await database?.drop();
});

test("a database without a table of users has all of supabase.auth", async () => {
  const client = makeClient(service.url);
  const email = newAddress();
  const signedUp = await client.auth.signUp({ email, password: PASSWORD, options: { data: { name: "Ada" } } });
  expect(signedUp.error).toBeNull();
  expect(signedUp.data.user).toMatchObject({
    email,
    user_metadata: { name: "Ada" },
    identities: [{ provider: "email" }],
  });

  const changed = await client.auth.updateUser({ data: { color: "green" } });
  expect(changed.data.user!.user_metadata).toEqual({ name: "Ada", color: "green" });
  const moved = newAddress();
  expect((await client.auth.updateUser({ email: moved })).data.user).toMatchObject({ email: moved });
  expect((await client.auth.updateUser({ password: `${PASSWORD}!` })).error).toBeNull();
  expect((await client.auth.refreshSession()).error).toBeNull();
  expect((await client.auth.signOut()).error).toBeNull();
  const again = await client.auth.signInWithPassword({ email: moved, password: `${PASSWORD}!` });
  expect(again.data.user!.id).toBe(signedUp.data.user!.id);
  expect((await makeClient(service.url).auth.signUp({ email: moved, password: PASSWORD })).error).toMatchObject({
    code: "user_already_exists",
  });

  const guest = await makeClient(service.url).auth.signInAnonymously();
  expect(guest.data.user).toMatchObject({ is_anonymous: true, email: "" });
});
