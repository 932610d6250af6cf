"""Kubeconfigs as the tools of managed clusters write them, with an authority and a server of one's own."""

from __future__ import annotations

EKS = """\
apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: {ca}
    server: {server}
  name: arn:aws:eks:eu-central-1:111122223333:cluster/shop
contexts:
- context:
    cluster: arn:aws:eks:eu-central-1:111122223333:cluster/shop
    user: arn:aws:eks:eu-central-1:111122223333:cluster/shop
  name: arn:aws:eks:eu-central-1:111122223333:cluster/shop
current-context: arn:aws:eks:eu-central-1:111122223333:cluster/shop
kind: Config
preferences: {{}}
users:
- name: arn:aws:eks:eu-central-1:111122223333:cluster/shop
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1beta1
      args:
      - --region
      - eu-central-1
      - eks
      - get-token
      - --cluster-name
      - shop
      - --output
      - json
      command: aws
      env:
      - name: AWS_PROFILE
        value: shop
      interactiveMode: IfAvailable
      provideClusterInfo: false
"""
"""``aws eks update-kubeconfig --name shop --profile shop``."""

GKE = """\
apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: {ca}
    server: {server}
  name: gke_shop-1234_europe-west3_shop
contexts:
- context:
    cluster: gke_shop-1234_europe-west3_shop
    user: gke_shop-1234_europe-west3_shop
  name: gke_shop-1234_europe-west3_shop
current-context: gke_shop-1234_europe-west3_shop
kind: Config
preferences: {{}}
users:
- name: gke_shop-1234_europe-west3_shop
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1beta1
      args: null
      command: gke-gcloud-auth-plugin
      env: null
      installHint: Install gke-gcloud-auth-plugin for use with kubectl by following
        https://cloud.google.com/kubernetes-engine/docs/how-to/cluster-access-for-kubectl#install_plugin
      interactiveMode: IfAvailable
      provideClusterInfo: true
"""
"""``gcloud container clusters get-credentials shop``."""

AKS = """\
apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: {ca}
    server: {server}
  name: shop
contexts:
- context:
    cluster: shop
    user: clusterUser_shop-group_shop
  name: shop
current-context: shop
kind: Config
preferences: {{}}
users:
- name: clusterUser_shop-group_shop
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1beta1
      args:
      - get-token
      - --environment
      - AzurePublicCloud
      - --server-id
      - 00000000-0000-0000-0000-000000000001
      - --client-id
      - 00000000-0000-0000-0000-000000000002
      - --tenant-id
      - 00000000-0000-0000-0000-000000000003
      - --login
      - devicecode
      command: kubelogin
      env: null
      installHint: |2

        kubelogin is not installed which is required to connect to AAD enabled cluster.

        To learn more, please go to https://aka.ms/aks/kubelogin
      provideClusterInfo: false
"""
"""``az aks get-credentials --resource-group shop-group --name shop``, for users of Entra ID."""

AKS_LOCAL = """\
apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: {ca}
    server: {server}
  name: shop
contexts:
- context:
    cluster: shop
    user: clusterAdmin_shop-group_shop
  name: shop-admin
current-context: shop-admin
kind: Config
preferences: {{}}
users:
- name: clusterAdmin_shop-group_shop
  user:
    client-certificate-data: {certificate}
    client-key-data: {key}
    token: 0123456789abcdef0123456789abcdef
"""
"""``az aks get-credentials --admin``: a certificate and a token."""

COMMANDS = {"EKS": "aws", "GKE": "gke-gcloud-auth-plugin", "AKS": "kubelogin"}
"""The credential plugins."""
