import { randomBytes } from "node:crypto";
import pg from "pg";
import { withLogin } from "#config/connection-string";
import { quotedName } from "#postgres/client";
import type { AsOwner } from "#postgres/database";

type CronLogin = { readonly name: string; readonly password: string; readonly madeAt: number };

const PREFIX = "content_service_cron_";
const RENEWAL_MS = 24 * 3_600_000;
/** The role of a process that was killed ends after this time, and the next login of any process drops it. */
const VALID_DAYS = 2;
const FIND_EXPIRED = `
  select rolname from pg_catalog.pg_roles where pg_catalog.starts_with(rolname, '${PREFIX}') and rolvaliduntil < pg_catalog.now()`;

/**
 * Makes logins for the commands of other roles than the owner, one for each role: RESET ROLE and SET SESSION AUTHORIZATION lead back to
 * the login of a session, so that of the owner would be no limit. A login has no right except to become its role.
 */
export class CronLogins {
  readonly #asOwner: AsOwner;
  readonly #url: string;
  readonly #logins = new Map<string, Promise<CronLogin>>();

  constructor({ asOwner, url }: { readonly asOwner: AsOwner; readonly url: string }) {
    this.#asOwner = asOwner;
    this.#url = url;
  }

  /** Returns the URL of a session that may become the role. */
  async urlFor(role: string): Promise<string> {
    const known = this.#logins.get(role);
    const isOld = ((await known)?.madeAt ?? 0) + RENEWAL_MS < Date.now();
    if (isOld && this.#logins.get(role) === known) this.#logins.delete(role);
    const login = this.#logins.get(role) ?? this.#make(role);
    this.#logins.set(role, login);
    // A failed attempt is repeated by the next run.
    login.catch(() => {
      if (this.#logins.get(role) === login) this.#logins.delete(role);
    });
    return withLogin(this.#url, await login);
  }

  /** Makes another login at the next run, because this one was refused. */
  async forget(role: string): Promise<void> {
    const login = await this.#logins.get(role)?.catch(() => null);
    this.#logins.delete(role);
    if (login) await this.#drop(login.name).catch(() => {});
  }

  async close(): Promise<void> {
    const made = await Promise.allSettled(this.#logins.values());
    this.#logins.clear();
    for (const each of made) if (each.status === "fulfilled") await this.#drop(each.value.name).catch(() => {});
  }

  async #make(role: string): Promise<CronLogin> {
    const { rows } = await this.#asOwner((client) => client.query<{ rolname: string }>(FIND_EXPIRED));
    // A role that owns objects stays, without a right to log in.
    for (const { rolname } of rows) await this.#drop(rolname).catch(() => {});
    const name = `${PREFIX}${randomBytes(6).toString("hex")}`;
    const password = randomBytes(24).toString("base64url");
    const until = new Date(Date.now() + VALID_DAYS * RENEWAL_MS).toISOString();
    const attributes = `login noinherit password ${pg.escapeLiteral(password)} valid until ${pg.escapeLiteral(until)}`;
    await this.#asOwner((client) =>
      client.query(`create role ${quotedName(name)} ${attributes}; grant ${quotedName(role)} to ${quotedName(name)}`),
    );
    return { name, password, madeAt: Date.now() };
  }

  async #drop(name: string): Promise<void> {
    await this.#asOwner((client) => client.query(`drop role if exists ${quotedName(name)}`));
  }
}
