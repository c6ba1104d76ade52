type DatabaseUrls = Readonly<Record<"databaseUrl" | "ownerDatabaseUrl" | "directDatabaseUrl", string | null>> & {
  readonly readDatabaseUrls: readonly string[] | null;
};

/** Returns the name of the database of a branch. */
export function branchDatabase(database: string, branch: string | null): string {
  return branch === null ? database : `${database}_branch_${branch}`;
}

/** Returns the connection string with another database. The host of a unix socket is empty, which URL does not allow. */
export function withDatabase(url: string, rename: (name: string) => string): string {
  return url.replace(/(^\w+:\/\/[^/?]*\/)([^?]+)/, (_, start: string, name: string) => start + rename(name));
}

/** Returns the connection strings of the branch in place of those of the database. */
export function selectBranch(settings: DatabaseUrls & { readonly branch: string | null }): DatabaseUrls {
  const { branch, databaseUrl, ownerDatabaseUrl, directDatabaseUrl, readDatabaseUrls } = settings;
  const select = (url: string | null) => url && withDatabase(url, (name) => branchDatabase(name, branch));
  return {
    databaseUrl: select(databaseUrl),
    ownerDatabaseUrl: select(ownerDatabaseUrl),
    directDatabaseUrl: select(directDatabaseUrl),
    readDatabaseUrls: readDatabaseUrls?.map((url) => select(url)!) ?? null,
  };
}
