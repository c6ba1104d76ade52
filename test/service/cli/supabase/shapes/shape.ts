import type { SupabaseFiles } from "../../../../supabase-template.ts";

export const [ALICE, BOB] = ["a0000000-0000-4000-8000-000000000001", "b0000000-0000-4000-8000-000000000002"] as const;

/** Two users as seeds of public projects insert them. */
export const USERS = `
  insert into auth.users (instance_id, id, aud, role, email, encrypted_password, email_confirmed_at, raw_app_meta_data, raw_user_meta_data, created_at, updated_at,
    confirmation_token, email_change, email_change_token_new, recovery_token)
  values
    ('00000000-0000-0000-0000-000000000000', '${ALICE}', 'authenticated', 'authenticated', 'alice@example.org', crypt('password123', gen_salt('bf')), now(),
      '{"provider":"email","providers":["email"]}', '{"full_name":"Alice","avatar_url":"https://example.org/a.png"}', now(), now(), '', '', '', ''),
    ('00000000-0000-0000-0000-000000000000', '${BOB}', 'authenticated', 'authenticated', 'bob@example.org', crypt('password123', gen_salt('bf')), now(),
      '{"provider":"email","providers":["email"]}', '{"full_name":"Bob"}', now(), now(), '', '', '', '');`;

/** A statement, who runs it, and the rows or the SQLSTATE that it must have. */
export type ShapeCheck = {
  /** A role, `owner`, or the id of a user. */
  readonly as: string;
  readonly claims?: Readonly<Record<string, unknown>>;
  readonly sql: string;
  readonly rows?: readonly (readonly unknown[])[];
  readonly error?: string;
};

/** The construct of public projects that a test loads, as a folder `supabase`. */
export type Shape = {
  readonly name: string;
  readonly files: SupabaseFiles;
  readonly checks: readonly ShapeCheck[];
  /** Parts of what `init` must print. */
  readonly changes?: readonly string[];
};
