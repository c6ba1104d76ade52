import pg from "pg";
import { expect, test } from "vitest";
import { useDatabase } from "../../../database.ts";
import { useFixture } from "../../../fixture.ts";
import { useService } from "../../../serve.ts";
import { makeClient, newAddress, PASSWORD } from "./auth-client.ts";

const database = useDatabase({ template: "platform" });
const owner = useFixture(() => new pg.Pool({ connectionString: database.ownerUrl, max: 1 }));
const service = useService({
  database,
  settings: {
    BASE_SCHEMA: "platform",
    AUTH_AUTOCONFIRM: "true",
    AUTH_ANONYMOUS_SIGN_INS: "true",
  },
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
});

test("triggers see that a new account is anonymous and has no address, and its user can convert it", async () => {
  await owner.query(`
    create table public.inserted_accounts (id uuid, email text, is_anonymous boolean);
    create function public.note_account() returns trigger language plpgsql security definer set search_path = '' as $$
    begin
      insert into public.inserted_accounts values (new.id, new.email, new.is_anonymous);
      return new;
    end $$;
    create trigger note_account after insert on auth.users for each row execute function public.note_account();`);
  const { auth } = makeClient(service.url);
  const guest = await auth.signInAnonymously();
  expect(guest.data.user).toMatchObject({ is_anonymous: true, email: "" });
  const { id } = guest.data.user!;
  const { rows: inserted } = await owner.query("select * from public.inserted_accounts");
  expect(inserted).toEqual([{ id, email: null, is_anonymous: true }]);

  const email = newAddress();
  expect((await auth.updateUser({ email })).data.user).toMatchObject({ id, email, is_anonymous: false });
  expect((await auth.updateUser({ password: PASSWORD })).error).toBeNull();
  const again = await makeClient(service.url).auth.signInWithPassword({ email, password: PASSWORD });
  expect(again.data.user).toMatchObject({ id, email });
});
