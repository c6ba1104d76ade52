-- Backstage's catalogue: @backstage/plugin-catalog-backend 4.0.0 of npm, Copyright 2020 The Backstage Authors, Apache-2.0 (licenses/Apache-2.0.txt).
-- The end state of its migrations, as pg_dump writes what its migrations make, without rows.

SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;

CREATE TABLE public.final_entities (
    entity_id character varying(255) NOT NULL,
    hash character varying(255) NOT NULL,
    final_entity text,
    last_updated_at timestamp with time zone,
    entity_ref character varying(255) NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0.01', autovacuum_analyze_scale_factor='0.01');

COMMENT ON TABLE public.final_entities IS 'Final entities after processing and stitching';

COMMENT ON COLUMN public.final_entities.entity_id IS 'Entity ID -> refresh_state table';

COMMENT ON COLUMN public.final_entities.hash IS 'Stable hash of the entity data';

COMMENT ON COLUMN public.final_entities.final_entity IS 'The JSON encoded final entity';

COMMENT ON COLUMN public.final_entities.last_updated_at IS 'The time when final_entity changed';

COMMENT ON COLUMN public.final_entities.entity_ref IS 'The entity reference of the entity';

CREATE TABLE public.knex_migrations (
    id integer NOT NULL,
    name character varying(255),
    batch integer,
    migration_time timestamp with time zone
);

CREATE SEQUENCE public.knex_migrations_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE public.knex_migrations_id_seq OWNED BY public.knex_migrations.id;

CREATE TABLE public.knex_migrations_lock (
    index integer NOT NULL,
    is_locked integer
);

CREATE SEQUENCE public.knex_migrations_lock_index_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE public.knex_migrations_lock_index_seq OWNED BY public.knex_migrations_lock.index;

CREATE TABLE public.location_update_log (
    id bigint NOT NULL,
    status text NOT NULL,
    created_at timestamp with time zone DEFAULT CURRENT_TIMESTAMP NOT NULL,
    message text,
    location_id uuid,
    entity_name text,
    CONSTRAINT location_update_log_status_check CHECK ((status = ANY (ARRAY['success'::text, 'fail'::text])))
);

CREATE SEQUENCE public.location_update_log_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE public.location_update_log_id_seq OWNED BY public.location_update_log.id;

CREATE VIEW public.location_update_log_latest AS
SELECT
    NULL::bigint AS id,
    NULL::text AS status,
    NULL::timestamp with time zone AS created_at,
    NULL::text AS message,
    NULL::uuid AS location_id,
    NULL::text AS entity_name;

CREATE TABLE public.locations (
    id uuid NOT NULL,
    type character varying(255) NOT NULL,
    target text NOT NULL,
    location_entity_ref character varying(255) NOT NULL
);

COMMENT ON TABLE public.locations IS 'Registered locations that shall be continuously scanned for catalog item updates';

COMMENT ON COLUMN public.locations.id IS 'Auto-generated ID of the location';

COMMENT ON COLUMN public.locations.type IS 'The type of location';

COMMENT ON COLUMN public.locations.target IS 'The actual target of the location';

COMMENT ON COLUMN public.locations.location_entity_ref IS 'The entity ref of the corresponding Location kind entity, e.g. location:default/generated-<sha1hex>';

CREATE TABLE public.refresh_keys (
    entity_id character varying(255) NOT NULL,
    key character varying(255) NOT NULL
);

COMMENT ON TABLE public.refresh_keys IS 'This table contains relations between entities and keys to trigger refreshes with';

COMMENT ON COLUMN public.refresh_keys.entity_id IS 'A reference to the entity that the refresh key is tied to';

COMMENT ON COLUMN public.refresh_keys.key IS 'A reference to a key which should be used to trigger a refresh on this entity';

CREATE TABLE public.refresh_state (
    entity_id character varying(255) NOT NULL,
    entity_ref character varying(255) NOT NULL,
    unprocessed_entity text NOT NULL,
    processed_entity text,
    cache text,
    errors text NOT NULL,
    next_update_at timestamp with time zone NOT NULL,
    last_discovery_at timestamp with time zone NOT NULL,
    location_key text,
    result_hash text,
    unprocessed_hash text
)
WITH (autovacuum_vacuum_scale_factor='0.01', autovacuum_analyze_scale_factor='0.01');

COMMENT ON TABLE public.refresh_state IS 'Location refresh states';

COMMENT ON COLUMN public.refresh_state.entity_id IS 'Primary ID, also used as the uid of the entity';

COMMENT ON COLUMN public.refresh_state.entity_ref IS 'A reference to the entity for this refresh state';

COMMENT ON COLUMN public.refresh_state.unprocessed_entity IS 'The unprocessed entity (in original form) as JSON';

COMMENT ON COLUMN public.refresh_state.processed_entity IS 'The processed entity (not yet stitched) as JSON';

COMMENT ON COLUMN public.refresh_state.cache IS 'Cache information tied to refreshes of this entity';

COMMENT ON COLUMN public.refresh_state.errors IS 'JSON array containing all errors related to entity';

COMMENT ON COLUMN public.refresh_state.next_update_at IS 'Timestamp of when entity should be updated';

COMMENT ON COLUMN public.refresh_state.last_discovery_at IS 'The last timestamp that this entity was discovered';

COMMENT ON COLUMN public.refresh_state.location_key IS 'Opaque conflict resolution key';

COMMENT ON COLUMN public.refresh_state.result_hash IS 'A hash of the processed contents, used to avoid duplicate work';

COMMENT ON COLUMN public.refresh_state.unprocessed_hash IS 'A hash of the unprocessed contents';

CREATE TABLE public.refresh_state_references (
    id bigint NOT NULL,
    source_key text,
    source_entity_ref text,
    target_entity_ref text NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0.01', autovacuum_analyze_scale_factor='0.01');

COMMENT ON TABLE public.refresh_state_references IS 'Edges between refresh state rows';

COMMENT ON COLUMN public.refresh_state_references.id IS 'Primary key to distinguish unique lines from each other';

COMMENT ON COLUMN public.refresh_state_references.source_key IS 'Opaque identifier for non-entity sources';

COMMENT ON COLUMN public.refresh_state_references.source_entity_ref IS 'EntityRef of entity sources';

COMMENT ON COLUMN public.refresh_state_references.target_entity_ref IS 'The EntityRef of the target entity.';

CREATE SEQUENCE public.refresh_state_references_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE public.refresh_state_references_id_seq OWNED BY public.refresh_state_references.id;

CREATE TABLE public.relations (
    originating_entity_id character varying(255) NOT NULL,
    source_entity_ref character varying(255) NOT NULL,
    type character varying(255) NOT NULL,
    target_entity_ref character varying(255) NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0.01', autovacuum_analyze_scale_factor='0.01');

COMMENT ON TABLE public.relations IS 'All relations between entities';

COMMENT ON COLUMN public.relations.originating_entity_id IS 'The entity that provided the relation';

COMMENT ON COLUMN public.relations.source_entity_ref IS 'Entity reference of the source entity of the relation';

COMMENT ON COLUMN public.relations.type IS 'The type of the relation between the entities';

COMMENT ON COLUMN public.relations.target_entity_ref IS 'Entity reference of the target entity of the relation';

CREATE TABLE public.search (
    entity_id character varying(255),
    key character varying(255) NOT NULL,
    value character varying(255),
    original_value character varying(255)
)
WITH (autovacuum_vacuum_scale_factor='0.01', autovacuum_analyze_scale_factor='0.01');

COMMENT ON TABLE public.search IS 'Flattened key-values from the entities, for filtering';

COMMENT ON COLUMN public.search.entity_id IS 'The entity that matches this key/value';

COMMENT ON COLUMN public.search.key IS 'A key that occurs in the entity';

COMMENT ON COLUMN public.search.value IS 'The corresponding value to match on';

COMMENT ON COLUMN public.search.original_value IS 'Holds the corresponding original case sensitive value';

CREATE TABLE public.stitch_queue (
    entity_ref character varying(255) NOT NULL,
    stitch_ticket character varying(255) NOT NULL,
    next_stitch_at timestamp with time zone NOT NULL
);

COMMENT ON COLUMN public.stitch_queue.entity_ref IS 'The entity ref that needs stitching';

COMMENT ON COLUMN public.stitch_queue.stitch_ticket IS 'Changes with every new stitch request';

COMMENT ON COLUMN public.stitch_queue.next_stitch_at IS 'Timestamp of when entity should be stitched';

ALTER TABLE ONLY public.knex_migrations ALTER COLUMN id SET DEFAULT nextval('public.knex_migrations_id_seq'::regclass);

ALTER TABLE ONLY public.knex_migrations_lock ALTER COLUMN index SET DEFAULT nextval('public.knex_migrations_lock_index_seq'::regclass);

ALTER TABLE ONLY public.location_update_log ALTER COLUMN id SET DEFAULT nextval('public.location_update_log_id_seq'::regclass);

ALTER TABLE ONLY public.refresh_state_references ALTER COLUMN id SET DEFAULT nextval('public.refresh_state_references_id_seq'::regclass);

ALTER TABLE ONLY public.final_entities
    ADD CONSTRAINT final_entities_entity_ref_uniq UNIQUE (entity_ref);

ALTER TABLE ONLY public.final_entities
    ADD CONSTRAINT final_entities_pkey PRIMARY KEY (entity_id);

ALTER TABLE ONLY public.knex_migrations_lock
    ADD CONSTRAINT knex_migrations_lock_pkey PRIMARY KEY (index);

ALTER TABLE ONLY public.knex_migrations
    ADD CONSTRAINT knex_migrations_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.location_update_log
    ADD CONSTRAINT location_update_log_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.locations
    ADD CONSTRAINT locations_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.refresh_state
    ADD CONSTRAINT refresh_state_entity_ref_uniq UNIQUE (entity_ref);

ALTER TABLE ONLY public.refresh_state
    ADD CONSTRAINT refresh_state_pkey PRIMARY KEY (entity_id);

ALTER TABLE ONLY public.refresh_state_references
    ADD CONSTRAINT refresh_state_references_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.stitch_queue
    ADD CONSTRAINT stitch_queue_pkey PRIMARY KEY (entity_ref);

CREATE INDEX refresh_keys_entity_id_idx ON public.refresh_keys USING btree (entity_id);

CREATE INDEX refresh_keys_key_idx ON public.refresh_keys USING btree (key);

CREATE INDEX refresh_state_next_update_at_idx ON public.refresh_state USING btree (next_update_at);

CREATE INDEX refresh_state_references_source_entity_ref_idx ON public.refresh_state_references USING btree (source_entity_ref);

CREATE INDEX refresh_state_references_source_key_idx ON public.refresh_state_references USING btree (source_key);

CREATE INDEX refresh_state_references_target_entity_ref_idx ON public.refresh_state_references USING btree (target_entity_ref);

CREATE INDEX relations_source_entity_id_idx ON public.relations USING btree (originating_entity_id);

CREATE INDEX relations_source_entity_ref_idx ON public.relations USING btree (source_entity_ref);

CREATE INDEX relations_target_entity_ref_idx ON public.relations USING btree (target_entity_ref);

CREATE UNIQUE INDEX search_entity_key_value_idx ON public.search USING btree (entity_id, key, value);

CREATE INDEX search_facets_covering_idx ON public.search USING btree (key, original_value, entity_id) WHERE (original_value IS NOT NULL);

CREATE INDEX search_key_value_entity_idx ON public.search USING btree (key, value, entity_id);

CREATE INDEX stitch_queue_next_stitch_at_idx ON public.stitch_queue USING btree (next_stitch_at);

CREATE INDEX update_log_location_id_idx ON public.location_update_log USING btree (location_id);

CREATE STATISTICS public.search_key_value_stats ON key, value FROM public.search;

CREATE OR REPLACE VIEW public.location_update_log_latest AS
 SELECT t1.id,
    t1.status,
    t1.created_at,
    t1.message,
    t1.location_id,
    t1.entity_name
   FROM (public.location_update_log t1
     JOIN ( SELECT location_update_log.location_id,
            max(location_update_log.id) AS maxid
           FROM public.location_update_log
          GROUP BY location_update_log.location_id) t2 ON (((t1.location_id = t2.location_id) AND (t1.id = t2.maxid))))
  GROUP BY t1.location_id, t1.id
  ORDER BY t1.created_at DESC;

ALTER TABLE ONLY public.final_entities
    ADD CONSTRAINT final_entities_entity_id_foreign FOREIGN KEY (entity_id) REFERENCES public.refresh_state(entity_id) ON DELETE CASCADE;

ALTER TABLE ONLY public.location_update_log
    ADD CONSTRAINT location_update_log_location_id_foreign FOREIGN KEY (location_id) REFERENCES public.locations(id) ON UPDATE CASCADE ON DELETE CASCADE;

ALTER TABLE ONLY public.refresh_keys
    ADD CONSTRAINT refresh_keys_entity_id_foreign FOREIGN KEY (entity_id) REFERENCES public.refresh_state(entity_id) ON DELETE CASCADE;

ALTER TABLE ONLY public.refresh_state_references
    ADD CONSTRAINT refresh_state_references_source_entity_ref_foreign FOREIGN KEY (source_entity_ref) REFERENCES public.refresh_state(entity_ref) ON DELETE CASCADE;

ALTER TABLE ONLY public.refresh_state_references
    ADD CONSTRAINT refresh_state_references_target_entity_ref_foreign FOREIGN KEY (target_entity_ref) REFERENCES public.refresh_state(entity_ref) ON DELETE CASCADE;

ALTER TABLE ONLY public.relations
    ADD CONSTRAINT relations_originating_entity_id_foreign FOREIGN KEY (originating_entity_id) REFERENCES public.refresh_state(entity_id) ON DELETE CASCADE;

ALTER TABLE ONLY public.search
    ADD CONSTRAINT search_entity_id_foreign FOREIGN KEY (entity_id) REFERENCES public.final_entities(entity_id) ON DELETE CASCADE;
