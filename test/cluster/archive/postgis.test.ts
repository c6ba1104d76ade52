import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { pgDumpLines } from "../../../bench/archives/compare-restored.ts";
import { checkArchive } from "../../../cluster/archive/restore-archive.ts";
import { writeArchive } from "../../../cluster/archive/write-archive.ts";
import { withOldCluster } from "../../../cluster/upgrade-cluster.ts";
import { withClient } from "../../../postgres/client/with-client.ts";
import { useFolder } from "../../fixture.ts";
import { hasOldPostgres, makeOldCluster, OLD_BINARIES, OLD_MAJOR } from "../../old-cluster.ts";

const hasPostgis = hasOldPostgres && existsSync(`/usr/share/postgresql/${OLD_MAJOR}/extension/postgis.control`);

const OBJECTS = `
  create extension postgis;
  create extension postgis_topology;
  create extension postgis_raster;
  create extension postgis_tiger_geocoder cascade;
  create extension address_standardizer_data_us;
  insert into public.spatial_ref_sys (srid, auth_name, auth_srid, srtext, proj4text)
  values (990001, 'of a user', 1, 'LOCAL_CS["own"]', '+proj=longlat +datum=WGS84 +no_defs');
  create table public.places (
    id integer generated always as identity primary key,
    name text not null,
    position geometry(Point, 4326) not null,
    area geography(Polygon, 4326),
    own geometry(Point, 990001),
    box box2d,
    picture raster,
    center geometry generated always as (st_centroid(position)) stored,
    system integer references public.spatial_ref_sys,
    constraint on_earth check (st_x(position) between -180 and 180),
    exclude using gist (position with &&)
  );
  create index places_position on public.places using gist (position);
  create index places_area on public.places using gist (area);
  create index places_order on public.places using spgist (position);
  insert into public.places (name, position, area, own, box, picture, system) values
    ('Bern', st_setsrid(st_point(7.4474, 46.948), 4326), 'polygon((0 0, 1 0, 1 1, 0 0))', st_setsrid(st_point(1, 2), 990001),
      st_makebox2d(st_point(0, 0), st_point(1.5, 2)), st_addband(st_makeemptyraster(3, 3, 0, 0, 1), '8BUI'::text, 7), 990001),
    ('empty', 'srid=4326;point(0 0)', null, null, null, null, 4326);
  create view public.near as select name, st_astext(position) as text from public.places where st_dwithin(position, 'srid=4326;point(7 46)', 2);
  create materialized view public.hull as select st_convexhull(st_collect(position)) as area from public.places;
  create function public.distance(one public.places, other public.places) returns double precision
    language sql stable return st_distance(one.position::geography, other.position::geography);
  select topology.createtopology('town', 4326);
  create table public.streets (id integer primary key);
  select topology.addtopogeometrycolumn('town', 'public', 'streets', 'line', 'LINE');
  insert into public.streets values (1, topology.totopogeom('srid=4326;linestring(0 0, 1 1)', 'town', 1, 0));
`;

// The old Postgres runs as another user.
const folder = useFolder("postgis-", 0o755);

const run = (url: string, statement: string) => withClient(url, (client) => client.query(statement));

test.runIf(hasPostgis)(
  "a database with PostGIS is restored with its places, indexes, topologies, and spatial reference systems of its own",
  async () => {
    const file = join(folder, "backup.gz");
    await makeOldCluster(join(folder, "cluster"));
    await withOldCluster(join(folder, "cluster"), OLD_BINARIES, async (url) => {
      for (const database of ["source", "copy"]) await run(url("postgres"), `create database ${database}`);
      await run(url("source"), OBJECTS);
      // Administrators often install extensions before a restore.
      await run(url("copy"), "create extension postgis");
      await writeArchive(url("source"), file);
      const settings = { url: url("copy"), shadowUrl: "", rootUrl: url("postgres"), histories: [] };
      expect((await checkArchive(file, settings)).warnings).toEqual([]);
      const read = `
        select name, st_astext(position) as position, st_srid(own) as srid, st_value(picture, 1, 1) as pixel, auth_name,
          (select count(*)::int from topology.topology) as topologies,
          (select count(*)::int from public.spatial_ref_sys where srid > 990000) as systems,
          (select count(*)::int from pg_indexes where tablename = 'places') as indexes
        from public.places left join public.spatial_ref_sys on srid = system order by id`;
      const { rows } = await run(url("copy"), read);
      expect(rows).toEqual((await run(url("source"), read)).rows);
      expect(rows[0]).toMatchObject({ name: "Bern", srid: 990001, pixel: 7, auth_name: "of a user", systems: 1 });
      await run(
        url("copy"),
        "insert into public.places (name, position) values ('Thun', 'srid=4326;point(7.63 46.76)')",
      );
      await run(url("copy"), "delete from public.places where name = 'Thun'; refresh materialized view public.hull");
      const sequence = "select setval(pg_get_serial_sequence('public.places', 'id'), 2)";
      await run(url("copy"), sequence);
      expect(await pgDumpLines(OLD_BINARIES, url("copy"))).toEqual(await pgDumpLines(OLD_BINARIES, url("source")));
    });
  },
);
