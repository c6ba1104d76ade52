--! Previous: sha1:dae31108a7cdbb317c302e20efe5b7fa9c17acbf
--! Hash: sha1:1c4bbf1b7c8c8a2796cfe2cf7bf9750d3578d2e9
--! Message: last delivery of webhooks

-- A webhook's row stays when its process releases it, because it has the time of the last delivery.
alter table private.webhook_leases
  alter column holder drop not null,
  add column delivered_at timestamptz;
comment on table private.webhook_leases is 'Which process sends for a webhook, and when it last delivered.';
comment on column private.webhook_leases.holder is 'The process; null if it has released the webhook.';
comment on column private.webhook_leases.delivered_at is 'When a change was last delivered, to within five seconds.';
