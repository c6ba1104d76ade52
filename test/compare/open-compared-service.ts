import pg from "pg";
import { cloneDatabase } from "../database.ts";
import { serve } from "../serve.ts";
import { serverBinaries } from "../server-binaries.ts";
import { COMPARED_DATABASES, type ComparedService, type DatabaseName, type Settings } from "./compared-databases.ts";

/** Opens a service for a comparison of two of this commit. `prepare` changes the database before the service starts. */
export async function openComparedService(
  name: DatabaseName,
  settings: Settings = {},
  prepare: (owner: pg.ClientBase) => Promise<void> = async () => {},
): Promise<ComparedService> {
  const described = COMPARED_DATABASES[name];
  const database = await cloneDatabase(described.template);
  const owner = new pg.Client({ connectionString: database.ownerUrl });
  await owner.connect();
  await owner.query(await described.sql((await serverBinaries()).major));
  await prepare(owner);
  const service = await serve(database, { ...described.settings, ...settings });
  return {
    url: service.url,
    rewind: async () => void (described.rewind && (await owner.query(described.rewind))),
    close: async () => {
      await service.stop();
      await owner.end();
      await database.drop();
    },
  };
}
