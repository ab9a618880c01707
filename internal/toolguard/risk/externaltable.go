package risk

// externalTable lists commands that destroy what is not a file of the workspace, or publish it.
// parseExternal describes its form.
const externalTable = `
dropdb|dropuser|mysqladmin|pg_dropcluster
pg_restore --clean|-c
redis-cli|valkey-cli flushall|flushdb
influx delete
influx bucket delete
etcdctl del
rabbitmqctl reset|force_reset|delete_queue|delete_vhost|purge_queue
kafka-topics|kafka-topics.sh --delete
prisma migrate reset
prisma db push --force-reset|--accept-data-loss
rails|rake db:drop|db:drop:all|db:reset|db:migrate:reset|db:schema:load|db:purge|db:truncate_all|db:drop:_unsafe
python|python3|py manage.py flush|reset_db
python|python3|py manage.py migrate * zero
manage.py|django-admin flush|reset_db
manage.py|django-admin migrate * zero
php artisan migrate:fresh|migrate:reset|migrate:refresh|db:wipe
artisan migrate:fresh|migrate:reset|migrate:refresh|db:wipe
php console doctrine:database:drop|doctrine:schema:drop
php bin/console doctrine:database:drop|doctrine:schema:drop
console doctrine:database:drop|doctrine:schema:drop
mix ecto.drop|ecto.reset
alembic downgrade base
flask db downgrade base
knex migrate:rollback --all
sequelize|sequelize-cli db:drop|db:migrate:undo:all
typeorm schema:drop
drizzle-kit drop
drizzle-kit push --force
dotnet ef database drop
dotnet-ef database drop
flyway clean
liquibase drop-all|dropall
diesel database reset|drop
sqlx database reset|drop
dbmate drop
goose ** reset
migrate ** drop
atlas schema clean
supabase db reset
wp db drop|reset|clean
drush sql:drop|sql-drop
terraform|tofu destroy
terraform|tofu apply -destroy|--destroy
terraform|tofu state rm
terraform|tofu workspace delete
terragrunt destroy
terragrunt run-all|run destroy
pulumi destroy|down
pulumi stack rm
cdk destroy
serverless|sls remove
sam delete
vagrant destroy
kubectl|oc delete|drain
helm uninstall|delete|del|un
kind|k3d|minikube delete
kind|k3d cluster delete
k3d cluster delete
eksctl delete
argocd app delete
flux uninstall|delete
docker|podman|nerdctl volume rm|remove|prune
docker|podman|nerdctl system prune|reset
docker|podman|nerdctl container prune
docker|podman|nerdctl compose down -v|--volumes
docker-compose|podman-compose down -v|--volumes
docker|podman|nerdctl compose rm -v|-fv|-vf
docker stack|service rm
docker|podman|nerdctl push
aws s3 rm --recursive
aws s3 rb
aws s3 sync --delete
aws ** delete-*|terminate-*|purge-*|deregister-*|remove-*
gcloud ** delete
gcloud storage rm
gsutil rm|rb
az ** delete|purge
bq rm
doctl ** delete
heroku pg:reset|apps:destroy|addons:destroy
fly|flyctl ** destroy
vercel remove|rm
netlify sites:delete
neonctl|neon ** delete
pscale ** delete
firebase firestore:delete|database:remove|projects:delete|hosting:disable
wrangler delete
wrangler ** delete
linode-cli ** delete
hcloud ** delete
openstack ** delete
consul kv delete
vault delete
vault kv delete|destroy
vault kv metadata delete
nomad job stop|purge
nomad system gc
zfs|zpool destroy
lvremove|vgremove|pvremove
btrfs subvolume delete
mkfs|mkfs.ext4|mkfs.xfs|mkfs.btrfs|wipefs
diskutil erasedisk|erasevolume|reformat
parted ** rm|mklabel
crontab -r
userdel|deluser
shutdown|reboot|halt|poweroff
systemctl poweroff|reboot|halt
npm|pnpm|yarn|bun publish
npm unpublish|deprecate
yarn npm publish
lerna|changeset publish
semantic-release
cargo publish|yank
twine upload
poetry|uv|flit|hatch|pdm publish
gem push|yank
mvn|mvnw deploy
gradle|gradlew publish|publish*
dotnet nuget push
nuget push
mix hex.publish
helm push
vsce|ovsx publish
goreleaser release
gh repo delete|archive
gh release delete|create
gh secret|variable delete
gh issue|run|cache|label delete
glab repo|release delete
`
