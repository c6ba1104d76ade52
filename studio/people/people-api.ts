import type {
  AuditPage,
  InvitedUser,
  KeptEmails,
  ProviderList,
  SessionList,
  SignInSettingList,
  UserKeys,
} from "#operations/admin-types";
import { adminCall } from "../api/admin.ts";
import { request, requestJson } from "../api/client.ts";

/** A user in the format of Supabase Auth. */
export type User = {
  readonly id: string;
  readonly email: string;
  readonly phone: string;
  readonly role: string;
  readonly created_at: string;
  readonly last_sign_in_at?: string;
  readonly confirmed_at?: string;
  readonly email_confirmed_at?: string;
  readonly invited_at?: string;
  readonly banned_until?: string;
  readonly deleted_at?: string;
  readonly is_anonymous: boolean;
  readonly user_metadata: Readonly<Record<string, unknown>>;
  readonly app_metadata: Readonly<Record<string, unknown>>;
  readonly identities: readonly UserIdentity[];
};

type UserIdentity = {
  readonly identity_id: string;
  readonly id: string;
  readonly provider: string;
  readonly last_sign_in_at: string | null;
  readonly created_at: string;
};

export type UserPage = { readonly users: readonly User[]; readonly total: number };

export type UserChanges = Readonly<Record<string, unknown>>;

export const PAGE_SIZE = 50;
const USERS = "/auth/v1/admin/users";
const userPath = (id: string) => `${USERS}/${encodeURIComponent(id)}`;

export async function listUsers(page: number, filter: string, signal: AbortSignal): Promise<UserPage> {
  const query = new URLSearchParams({ page: String(page), per_page: String(PAGE_SIZE), filter });
  const response = await request(`${USERS}?${query}`, { signal });
  const { users } = (await response.json()) as { users: readonly User[] };
  return { users, total: Number(response.headers.get("X-Total-Count") ?? users.length) };
}

/** Reads the keys by which rows and policies refer to users (`auth.uid()`), by user id. */
export async function readUserKeys(ids: readonly string[], signal: AbortSignal): Promise<UserKeys["keys"]> {
  if (ids.length === 0) return {};
  const query = new URLSearchParams(ids.map((id) => ["user", id]));
  return (await adminCall<UserKeys>(`GET /user-keys?${query}`, { signal })).keys;
}

export function readUser(id: string, signal: AbortSignal): Promise<User> {
  return requestJson<User>(userPath(id), { signal });
}

export function createUser(user: UserChanges): Promise<User> {
  return requestJson<User>(USERS, { method: "POST", body: user });
}

export function changeUser(id: string, changes: UserChanges): Promise<User> {
  return requestJson<User>(userPath(id), { method: "PUT", body: changes });
}

/** Deletes a user. With `keepsRow` the row stays, without personal data. */
export async function deleteUser(id: string, keepsRow: boolean): Promise<void> {
  await request(userPath(id), { method: "DELETE", body: { should_soft_delete: keepsRow } });
}

/** Returns the id of the invited user. */
export async function inviteUser(email: string, role: string): Promise<string> {
  return (await adminCall<InvitedUser>("POST /invitations", { body: { email, role } })).id;
}

export async function sendSampleInvitation(email: string): Promise<void> {
  await request("/admin/v1/invitations/sample", { method: "POST", body: { email }, as: "administrator" });
}

/** The roles that a user can have. */
export const USER_ROLES = ["authenticated", "admin"];

/** Makes a link with which the user sets a new password. */
export async function makeRecoveryLink(email: string): Promise<string> {
  const body = { type: "recovery", email };
  const made = await requestJson<{ action_link: string }>("/auth/v1/admin/generate_link", { method: "POST", body });
  return made.action_link;
}

export type Factor = {
  readonly id: string;
  readonly friendly_name: string;
  readonly factor_type?: string;
  readonly status?: string;
  readonly created_at: string;
};

/** The second factors, or the passkeys. */
export type FactorKind = "factors" | "passkeys";

export function listFactors(userId: string, kind: FactorKind, signal: AbortSignal): Promise<readonly Factor[]> {
  return requestJson<readonly Factor[]>(`${userPath(userId)}/${kind}`, { signal });
}

export async function removeFactor(userId: string, kind: FactorKind, id: string): Promise<void> {
  await request(`${userPath(userId)}/${kind}/${encodeURIComponent(id)}`, { method: "DELETE" });
}

export async function listSessions(userId: string, signal: AbortSignal): Promise<SessionList["sessions"]> {
  const query = new URLSearchParams({ user: userId });
  return (await adminCall<SessionList>(`GET /sessions?${query}`, { signal })).sessions;
}

export async function endSession(id: string): Promise<void> {
  await request(`/admin/v1/sessions/${encodeURIComponent(id)}`, { method: "DELETE" });
}

export async function endSessions(userId: string): Promise<void> {
  await request(`/admin/v1/sessions?${new URLSearchParams({ user: userId })}`, { method: "DELETE" });
}

export type ApiKey = {
  readonly id: number;
  readonly begins: string;
  readonly role: string;
  readonly owner: number | null;
  readonly name: string;
  readonly createdAt: string;
  readonly expires: string | null;
  readonly revokedAt: string | null;
  readonly lastUsedAt: string | null;
};

type NewKey = {
  readonly role: string;
  readonly name: string;
  readonly owner: number | null;
  readonly expires: string | null;
};

export async function listKeys(signal: AbortSignal): Promise<readonly ApiKey[]> {
  return (await requestJson<{ keys: readonly ApiKey[] }>("/auth/keys", { signal })).keys;
}

export async function makeKey(key: NewKey): Promise<string> {
  return (await requestJson<{ key: string }>("/auth/keys", { method: "POST", body: key })).key;
}

export async function revokeKey(id: number): Promise<void> {
  await request(`/auth/keys/${id}`, { method: "DELETE" });
}

export async function listProviders(signal: AbortSignal): Promise<ProviderList["providers"]> {
  return (await adminCall<ProviderList>("GET /providers", { signal })).providers;
}

export function listEmails(signal: AbortSignal): Promise<KeptEmails> {
  return adminCall<KeptEmails>("GET /mails", { signal });
}

export type AuditFilter = Readonly<Partial<Record<"user" | "event" | "from" | "to" | "before", string>>>;

export function readAuditLog(filter: AuditFilter, signal: AbortSignal): Promise<AuditPage> {
  const parameters = Object.entries(filter).filter(([, value]) => value !== "");
  return adminCall<AuditPage>(`GET /audit-log?${new URLSearchParams(parameters)}`, { signal });
}

export async function listSignInSettings(signal: AbortSignal): Promise<SignInSettingList["settings"]> {
  return (await adminCall<SignInSettingList>("GET /sign-in-settings", { signal })).settings;
}
